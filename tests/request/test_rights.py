"""The decisions that are kept with a connection."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.access_rules import create_rules, delete_rules
from odradek.broker.request.audit import LOGGER
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.request.rights import allows, allows_on_topic, check, check_on_cluster, topic_filter
from odradek.broker.request.services import Services
from odradek.broker.security.access.rule import AccessRule
from odradek.broker.security.principal import Principal
from odradek.broker.structured_logging import LogEvent
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.errors import KafkaError
from tests.handlers.secured import secure

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
READ = Operation.READ
RULE = AccessRule(ResourceType.TOPIC, PatternType.PREFIXED, "t", "User:alice", "10.0.0.7", READ, PermissionType.ALLOW)


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    broker = Broker()
    secure(broker)
    async with broker:
        yield broker.services


@pytest.fixture
def context() -> RequestContext:
    connection = ConnectionContext("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.7", 40_000), principal=ALICE)
    return RequestContext(0, 0, 0, "client", 0.0, connection)


def kept(context: RequestContext) -> int:
    decisions = context.connection.decisions
    return 0 if decisions is None else len(decisions.allowed)


async def test_a_decision_is_kept_until_the_rules_change(services: Services, context: RequestContext) -> None:
    assert not allows_on_topic(services, context, READ, "t")
    assert kept(context) == 0

    await create_rules(services.metadata, [RULE])
    for _ in range(2):
        assert allows_on_topic(services, context, READ, "t")
        assert kept(context) == 1
    await create_rules(services.metadata, [msgspec.structs.replace(RULE, name="unrelated")])
    assert allows_on_topic(services, context, READ, "t")
    await delete_rules(services.metadata, [RULE])
    assert not allows_on_topic(services, context, READ, "t")
    assert kept(context) == 0


async def test_a_decision_is_of_one_operation_type_and_name(services: Services, context: RequestContext) -> None:
    await create_rules(services.metadata, [RULE])
    for _ in range(2):
        assert allows_on_topic(services, context, READ, "t")
        assert allows_on_topic(services, context, Operation.DESCRIBE, "t")
        assert not allows_on_topic(services, context, Operation.WRITE, "t")
        assert not allows_on_topic(services, context, READ, "u")
        assert not allows(services, context, READ, ResourceType.GROUP, "t")
    assert kept(context) == 2


async def test_another_principal_of_the_connection_has_other_decisions(
    services: Services, context: RequestContext
) -> None:
    await create_rules(services.metadata, [RULE])
    assert allows_on_topic(services, context, READ, "t")
    context.connection.principal = BOB
    assert not allows_on_topic(services, context, READ, "t")


async def test_a_connection_keeps_a_bounded_number_of_decisions(services: Services, context: RequestContext) -> None:
    await create_rules(services.metadata, [RULE])
    for number in range(1000):
        assert not allows_on_topic(services, context, READ, f"refused-{number}")
        assert allows_on_topic(services, context, READ, "t" * 257 + str(number))
    assert kept(context) == 0
    for number in range(10_000):
        assert allows_on_topic(services, context, READ, f"topic-{number}")
    assert kept(context) == 4096


async def test_the_address_of_the_client_counts(services: Services, context: RequestContext) -> None:
    await create_rules(services.metadata, [RULE])
    other = ConnectionContext("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.8", 40_000), principal=ALICE)
    assert allows_on_topic(services, context, READ, "t")
    assert not allows_on_topic(services, RequestContext(0, 0, 0, "client", 0.0, other), READ, "t")


async def test_a_filter_of_topics_follows_the_rules_and_keeps_nothing(
    services: Services, context: RequestContext
) -> None:
    may_describe = topic_filter(services, context)
    assert may_describe is not None
    assert not may_describe("t")
    await create_rules(services.metadata, [RULE])
    assert may_describe("t")
    assert kept(context) == 0


async def test_a_refusal_is_in_the_audit_log_with_the_rule_that_decided(
    services: Services, context: RequestContext, caplog: pytest.LogCaptureFixture
) -> None:
    denial = msgspec.structs.replace(RULE, permission=PermissionType.DENY, host="*")
    await create_rules(services.metadata, [RULE, denial])
    with caplog.at_level(logging.DEBUG, LOGGER):
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            check(services, context, READ, ResourceType.TOPIC, "t 1")
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            check_on_cluster(services, context, Operation.ALTER, Operation.CLUSTER_ACTION)
        allows_on_topic(services, context, READ, "left out of a list")

    seen = [
        (record.msg.fields["operation"], record.msg.fields["resource"], record.msg.fields["rule"])
        for record in caplog.records
        if isinstance(record.msg, LogEvent)
    ]
    assert seen == [
        ("READ", "TOPIC t 1", "User:alice must not READ TOPIC prefix t"),
        ("ALTER", "CLUSTER kafka-cluster", "no rule is for the resource"),
    ]
