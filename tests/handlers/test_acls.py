"""DescribeAcls, CreateAcls and DeleteAcls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.schema import Message
from tests.handlers.secured import allow, error_codes, revoke
from tests.wire import Wire

DISABLED = ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_there_are_no_access_rules(wire: Wire, version: int) -> None:
    described = await wire.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version)
    rule = AclCreation(2, "t", 3, "User:x", "*", 3, 3)
    created = await wire.ask(CreateAclsRequest([rule, rule]), version)
    deleted = await wire.ask(DeleteAclsRequest([DeleteAclsFilter(2, None, 1, None, None, 1, 1)]), version)

    assert (described.error_code, described.resources) == (DISABLED, [])
    assert [result.error_code for result in created.results] == [DISABLED, DISABLED]
    assert [result.error_code for result in deleted.filter_results] == [DISABLED]
    assert all(row.error_message for row in (described, *created.results, *deleted.filter_results))


ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, ALLOW, DENY = 3, 3, 2


@pytest.fixture
async def admin(secured: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", secured.port, "admin") as connected:
        yield connected


def rule(name: str = "t", **fields: Any) -> AclCreation:
    values = {"resource_type": 2, "principal": "User:x", "host": "*", "operation": READ, "permission_type": ALLOW}
    return AclCreation(**{**values, "resource_name": name, **fields})


async def create(wire: Wire, *rules: AclCreation, version: int = 3) -> list[ErrorCode]:
    response = await wire.ask(CreateAclsRequest([*rules]), version)
    return [ErrorCode(row.error_code) for row in response.results]


async def described(wire: Wire, wanted: DescribeAclsRequest | None = None, version: int = 3) -> list[tuple[Any, ...]]:
    response = await wire.ask(wanted or DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY), version)
    assert response.error_code == ErrorCode.NONE
    return [
        (each.resource_type, each.pattern_type, each.resource_name, [msgspec.structs.astuple(row) for row in each.acls])
        for each in response.resources
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_rules_are_created_described_and_deleted(admin: Wire, version: int) -> None:
    rules = rule(), rule(operation=4), rule("a", resource_pattern_type=PREFIXED, permission_type=DENY, host="1.2.3.4")
    assert await create(admin, *rules, version=version) == [ErrorCode.NONE] * 3
    assert await create(admin, rules[0], version=version) == [ErrorCode.NONE]

    prefix, literal = (2, PREFIXED, "a", [("User:x", "1.2.3.4", READ, DENY)]), [("User:x", "*", READ, ALLOW)]
    assert await described(admin, version=version) == [
        (2, LITERAL, "t", [*literal, ("User:x", "*", 4, ALLOW)]),
        prefix,
    ]
    wanted = DescribeAclsRequest(2, "t", LITERAL, "User:x", "*", READ, ALLOW)
    assert await described(admin, wanted, version) == [(2, LITERAL, "t", literal)]
    matching = DescribeAclsRequest(2, "ab", MATCH, None, None, ANY, ANY)
    assert await described(admin, matching, version) == [prefix]

    filters = [DeleteAclsFilter(2, "t", LITERAL, None, None, operation, ANY) for operation in (READ, ANY, READ)]
    results = (await admin.ask(DeleteAclsRequest(filters), version)).filter_results
    assert [sorted(row.operation for row in result.matching_acls) for result in results] == [[READ], [READ, 4], [READ]]
    assert await described(admin, version=version) == [prefix]


async def test_a_row_fails_alone(admin: Wire) -> None:
    wrong = [
        rule(""),
        rule("other", resource_type=4),
        rule(resource_type=99),
        rule(resource_pattern_type=9),
        rule(operation=99),
        rule(permission_type=-7),
        rule(principal="x"),
        rule("n" * 5000),
    ]
    response = await admin.ask(CreateAclsRequest([*wrong, rule()]), 3)

    assert [row.error_code for row in response.results] == [ErrorCode.INVALID_REQUEST] * len(wrong) + [0]
    assert all(row.error_message for row in response.results[:-1])
    assert len(await described(admin)) == 1


@pytest.mark.parametrize(
    "wrong", [{"resource_type": ANY}, {"resource_pattern_type": MATCH}, {"operation": ANY}, {"permission_type": ANY}]
)
async def test_nothing_is_created_with_what_only_filters_may_have(admin: Wire, wrong: dict[str, int]) -> None:
    assert await create(admin, rule(), rule(**wrong)) == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert await described(admin) == []


@pytest.mark.parametrize(
    "request_",
    [
        CreateAclsRequest([rule(), rule(resource_type=0)]),
        DescribeAclsRequest(ANY, None, 0, None, None, ANY, ANY),
        DeleteAclsRequest([DeleteAclsFilter(ANY, None, ANY, None, None, 0, ANY)]),
    ],
)
async def test_the_code_of_unknown_codes_closes_the_connection(admin: Wire, request_: Message) -> None:
    await admin.send(request_, 3)
    assert await admin.is_closed_by_peer()


async def test_a_filter_with_an_unknown_code_finds_nothing(admin: Wire) -> None:
    await create(admin, rule())
    assert await described(admin, DescribeAclsRequest(99, None, ANY, None, None, ANY, ANY)) == []

    filters = [
        DeleteAclsFilter(ANY, None, 99, None, None, ANY, ANY),
        DeleteAclsFilter(ANY, None, ANY, None, None, 99, ANY),
        DeleteAclsFilter(2, "t", LITERAL, None, None, ANY, ANY),
    ]
    results = (await admin.ask(DeleteAclsRequest(filters), 3)).filter_results

    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, 0]
    assert [len(result.matching_acls) for result in results] == [0, 0, 1]
    assert [result.error_message for result in results] == ["Unknown patternFilter.", "Unknown entryFilter.", None]


async def test_many_rules_are_created_and_found(admin: Wire) -> None:
    rules = [rule(f"t-{number}", principal=f"User:{number % 7}") for number in range(3000)]
    assert set(await create(admin, *rules)) == {ErrorCode.NONE}

    assert len(await described(admin)) == 3000
    assert len(await described(admin, DescribeAclsRequest(ANY, None, ANY, "User:3", None, ANY, ANY))) == 429


async def test_filters_that_find_the_same_again_and_again_are_refused(admin: Wire) -> None:
    await create(admin, *[rule(f"t-{number}") for number in range(1000)])
    every = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)

    results = (await admin.ask(DeleteAclsRequest([every] * 101), 3)).filter_results

    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    assert len(await described(admin)) == 1000


async def test_the_next_request_is_decided_by_a_new_rule(secured: Broker, admin: Wire) -> None:
    async with Wire("127.0.0.1", secured.port, "alice") as alice:
        wanted = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
        for _ in range(2):
            assert (await alice.ask(wanted, 3)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            await allow(admin, "alice", (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"))
            assert (await alice.ask(wanted, 3)).error_code == ErrorCode.NONE
            await revoke(admin, "alice")


async def test_rules_need_rights_on_the_cluster(secured: Broker, admin: Wire) -> None:
    async with Wire("127.0.0.1", secured.port, "alice") as alice:
        wanted = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)
        refused = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        await allow(admin, "alice", (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"))
        assert await create(alice, rule()) == refused
        assert error_codes(await alice.ask(DeleteAclsRequest([wanted]), 3)) == refused
        assert len(await described(alice)) == 1

        await allow(admin, "alice", (Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster"))
        assert await create(alice, rule()) == [ErrorCode.NONE]
