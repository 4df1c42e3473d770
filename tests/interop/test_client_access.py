"""The bundled admin client at a broker with an authorizer, ours and Apache Kafka: access rules, users, quotas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from odradek.client import (
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    AclRule,
    Admin,
    AuthenticationFailedError,
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    NewTopic,
    Producer,
    QuotaEntity,
    QuotaFilter,
    QuotaName,
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
)
from odradek.protocol.errors import ErrorCode
from tests.peers.secured_server import SecuredServer

READ_ORDERS = AclRule(
    resource_type=AclResourceType.TOPIC,
    resource_name="access-orders",
    principal="User:alice",
    operation=AclOperation.READ,
)
DENY_PREFIX = AclRule(
    resource_type=AclResourceType.TOPIC,
    resource_name="access-",
    pattern_type=AclPatternType.PREFIXED,
    principal="User:bob",
    operation=AclOperation.ALL,
    permission=AclPermission.DENY,
    host="127.0.0.1",
)
OF_GROUP = AclRule(
    resource_type=AclResourceType.GROUP, resource_name="*", principal="User:alice", operation=AclOperation.READ
)


@pytest.fixture
async def admin(secured: SecuredServer) -> AsyncIterator[Admin]:
    """As a super user; leaves no rule behind."""
    async with secured.admin() as admin:
        yield admin
        (await admin.delete_acls([AclFilter()])).values_or_raise()


def as_alice(kafka: SecuredServer) -> Admin:
    return Admin(kafka.address("SASL_PLAINTEXT"), **kafka.sasl())


async def until(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """Ask until the answer is the expected one: Kafka's broker applies a little later what its controller has done."""
    for _ in range(200):
        if (answer := await ask()) == expected:
            return
        await asyncio.sleep(0.02)
    assert answer == expected


async def test_rules_are_created_found_and_deleted(admin: Admin) -> None:
    rules = [READ_ORDERS, DENY_PREFIX, OF_GROUP]
    assert (await admin.create_acls(rules)).values_or_raise() == dict.fromkeys(rules)
    assert (await admin.create_acls(rules)).failed == {}  # those that exist stay
    assert set(await admin.describe_acls()) == set(rules)
    found = await admin.describe_acls(AclFilter(principal="User:alice"))
    assert set(found) == {READ_ORDERS, OF_GROUP}
    concerning = AclFilter(
        resource_type=AclResourceType.TOPIC, resource_name="access-orders", pattern_type=AclPatternType.MATCH
    )
    assert set(await admin.describe_acls(concerning)) == {READ_ORDERS, DENY_PREFIX}
    deleted = await admin.delete_acls([concerning, OF_GROUP.filter, READ_ORDERS.filter])
    assert set(deleted.value(concerning)) == {READ_ORDERS, DENY_PREFIX}
    assert deleted.value(OF_GROUP.filter) == (OF_GROUP,)
    assert await admin.describe_acls() == ()


async def test_a_rule_that_makes_no_sense_is_an_error_of_its_own(admin: Admin) -> None:
    wrong = AclRule(
        resource_type=AclResourceType.CLUSTER,
        resource_name="not the cluster",
        principal="User:alice",
        operation=AclOperation.ALTER,
    )
    created = await admin.create_acls([wrong, READ_ORDERS])
    assert isinstance(created[wrong], BrokerError)
    assert created.failed.keys() == {wrong}
    assert await admin.describe_acls() == (READ_ORDERS,)


async def test_rules_decide_what_a_user_may_do(secured: SecuredServer, admin: Admin) -> None:
    (await admin.create_topics([NewTopic("access-orders", 1)])).values_or_raise()
    address, user = secured.address("SASL_PLAINTEXT"), secured.sasl()
    with pytest.raises(AuthorizationError, match=r"get a producer id .* Ask for WRITE on the topics"):
        async with Producer(address, **user):
            pass
    async with Producer(address, enable_idempotence=False, **user) as producer:
        with pytest.raises(AuthorizationError, match=r"TOPIC_AUTHORIZATION_FAILED\. Ask for an ACL on the topic"):
            await producer.send_and_wait("access-orders", b"v")
    write = AclRule(
        resource_type=AclResourceType.TOPIC,
        resource_name="access-",
        pattern_type=AclPatternType.PREFIXED,
        principal="User:alice",
        operation=AclOperation.WRITE,
    )
    (await admin.create_acls([write])).values_or_raise()

    async def may_write() -> bool:
        try:
            async with Producer(address, **user) as producer:
                await producer.send_and_wait("access-orders", b"v")
        except AuthorizationError:
            return False
        return True

    await until(may_write, True)


async def test_who_may_not_administer_is_told_so(secured: SecuredServer, admin: Admin) -> None:
    async with as_alice(secured) as alice:
        with pytest.raises(AuthorizationError, match=r"list access rules at .*: CLUSTER_AUTHORIZATION_FAILED"):
            await alice.describe_acls()
        assert isinstance((await alice.create_acls([READ_ORDERS]))[READ_ORDERS], AuthorizationError)
        changed = await alice.alter_user_scram_credentials([ScramUpsertion("alice", "new")])
        assert isinstance(changed["alice"], AuthorizationError)
        with pytest.raises(AuthorizationError):
            await alice.describe_client_quotas()
        entity = QuotaEntity(user="alice")
        quotas = await alice.alter_client_quotas({entity: {"producer_byte_rate": 1.0}})
        assert isinstance(quotas[entity], AuthorizationError)


async def test_a_user_gets_a_password_and_loses_it(secured: SecuredServer, admin: Admin) -> None:
    def settings(mechanism: str) -> dict[str, Any]:
        return secured.sasl(mechanism, sasl_username="dora, =", sasl_password="first 🔑")

    address = secured.address("SASL_PLAINTEXT")
    changes = [
        ScramUpsertion("dora, =", "first 🔑"),
        ScramUpsertion("dora, =", "first 🔑", "SCRAM-SHA-256", 8192),
    ]
    assert "first" not in repr(changes)

    async def credentials() -> object:
        described = (await admin.describe_user_scram_credentials(["dora, ="]))["dora, ="]
        if isinstance(described, BaseException):
            assert isinstance(described, BrokerError)
            return described.code
        return set(described)

    async def may_log_in(mechanism: str) -> bool:
        try:
            async with Admin(address, **settings(mechanism)):
                return True
        except AuthenticationFailedError:
            return False

    (await admin.alter_user_scram_credentials(changes)).values_or_raise()
    both = {ScramCredentialInfo("SCRAM-SHA-512", 4096), ScramCredentialInfo("SCRAM-SHA-256", 8192)}
    await until(credentials, both)
    assert {"dora, =", "alice"} <= (await admin.describe_user_scram_credentials()).keys()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        await until(partial(may_log_in, mechanism), True)
    (await admin.alter_user_scram_credentials([ScramDeletion("dora, =", "SCRAM-SHA-256")])).values_or_raise()
    await until(partial(may_log_in, "SCRAM-SHA-256"), False)
    (await admin.alter_user_scram_credentials([ScramDeletion("dora, =")])).values_or_raise()
    await until(credentials, ErrorCode.RESOURCE_NOT_FOUND)


async def test_a_credential_that_brokers_do_not_accept_is_an_error_of_its_user(admin: Admin) -> None:
    changes = [ScramUpsertion("weak", "p", iterations=100), ScramDeletion("nobody")]
    changed = await admin.alter_user_scram_credentials(changes)
    codes = {user: error.code for user, error in changed.failed.items() if isinstance(error, BrokerError)}
    assert codes == {"weak": ErrorCode.UNACCEPTABLE_CREDENTIAL, "nobody": ErrorCode.RESOURCE_NOT_FOUND}
    with pytest.raises(ConfigurationError, match="the mechanism is 'PLAIN'"):
        await admin.alter_user_scram_credentials([ScramUpsertion("weak", "p", "PLAIN")])


async def test_quotas_are_set_found_and_removed(admin: Admin) -> None:
    alice, default = QuotaEntity(user="alice"), QuotaEntity(user=QuotaName.DEFAULT)
    pair = QuotaEntity(user="alice", client_id=QuotaName.DEFAULT)
    address = QuotaEntity(ip="127.0.0.9")
    quotas = {
        alice: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6},
        default: {"request_percentage": 50.0},
        pair: {"controller_mutation_rate": 2.5},
        address: {"connection_creation_rate": 7.0},
    }
    validated = await admin.alter_client_quotas(quotas, validate_only=True)
    assert validated.failed == {}
    assert await admin.describe_client_quotas() == {}
    (await admin.alter_client_quotas(quotas)).values_or_raise()
    await until(admin.describe_client_quotas, quotas)
    found = [
        await admin.describe_client_quotas(wanted)
        for wanted in (
            QuotaFilter(user="alice"),
            QuotaFilter(user="alice", strict=True),
            QuotaFilter(user=QuotaName.DEFAULT),
            QuotaFilter(user=QuotaName.ANY, client_id=QuotaName.ANY),
            QuotaFilter(ip=QuotaName.ANY),
        )
    ]
    assert [set(one) for one in found] == [{alice, pair}, {alice}, {default}, {pair}, {address}]
    removed = {entity: dict.fromkeys(values) for entity, values in quotas.items()}
    (await admin.alter_client_quotas(removed)).values_or_raise()
    await until(admin.describe_client_quotas, {})
    wrong = await admin.alter_client_quotas({alice: {"colour": 1.0}})
    assert isinstance(wrong[alice], BrokerError)
    with pytest.raises(ConfigurationError, match="has no owner"):
        await admin.alter_client_quotas({QuotaEntity(): {"producer_byte_rate": 1.0}})
