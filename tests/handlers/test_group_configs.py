"""Properties of single groups: allowed values, descriptions, and their effect on groups of the consumer protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.handlers.configs import APPEND, DELETE, GROUP, SET, change, own_values, replace, set_to
from tests.handlers.group_members import find_coordinator
from tests.wire import Wire

SESSION, HEARTBEAT, ASSIGNMENT = (
    f"consumer.{what}.ms" for what in ("session.timeout", "heartbeat.interval", "assignment.interval")
)
NAME = "a/group of ours"  # any text is an id

# Apache Kafka's broker hears of a change some milliseconds after the answer; tests/interop compares the answers.
pytestmark = pytest.mark.usefixtures("only_here")


async def heartbeat_interval(wire: Wire, group_id: str) -> int:
    """The response to a member that joins."""
    request = ConsumerGroupHeartbeatRequest(
        group_id,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    response = await wire.ask(request, 1)
    assert response.error_code == ErrorCode.NONE
    return int(response.heartbeat_interval_ms)


async def rows(wire: Wire, group_id: str) -> dict[str, Any]:
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, group_id, None)], include_synonyms=True)
    [result] = (await wire.ask(request, 4)).results
    assert result.error_code == ErrorCode.NONE
    return {row.name: row for row in result.configs}


async def test_a_groups_own_properties_take_effect_at_once(wire: Wire) -> None:
    await find_coordinator(wire, NAME)
    assert await heartbeat_interval(wire, NAME) == 5_000

    await set_to(wire, GROUP, NAME, consumer_heartbeat_interval_ms="7000", consumer_session_timeout_ms="50000")

    assert await heartbeat_interval(wire, NAME) == 7_000
    assert await heartbeat_interval(wire, "another") == 5_000
    response = await change(wire, GROUP, NAME, (HEARTBEAT, DELETE, None))
    assert response.error_code == ErrorCode.NONE
    assert await heartbeat_interval(wire, NAME) == 5_000
    assert await own_values(wire, GROUP, NAME) == {SESSION: "50000"}


async def test_they_are_described_with_their_sources(wire: Wire) -> None:
    await set_to(wire, GROUP, NAME, consumer_session_timeout_ms="50000")

    described = await rows(wire, NAME)

    assert {name: (row.value, row.config_source, row.read_only) for name, row in described.items()} == {
        SESSION: ("50000", 8, False),
        HEARTBEAT: ("5000", 5, False),
        ASSIGNMENT: ("1000", 5, False),
    }
    assert [(synonym.name, synonym.value, synonym.source) for synonym in described[SESSION].synonyms] == [
        (SESSION, "50000", 8),
        (f"group.{SESSION}", "45000", 5),
    ]


async def test_groups_with_properties_are_listed(wire: Wire) -> None:
    await set_to(wire, GROUP, NAME, consumer_session_timeout_ms="50000")
    await set_to(wire, GROUP, "b", consumer_session_timeout_ms="50000")
    assert (await replace(wire, GROUP, "b")).error_code == ErrorCode.NONE

    listed = (await wire.ask(ListConfigResourcesRequest([GROUP]), 1)).config_resources

    assert [(each.resource_type, each.resource_name) for each in listed] == [(GROUP, NAME)]


@pytest.mark.parametrize(
    ("operations", "code", "why"),
    [
        ([(SESSION, SET, "44999")], ErrorCode.INVALID_CONFIG, "group.consumer.min.session.timeout.ms"),
        ([(SESSION, SET, "60001")], ErrorCode.INVALID_CONFIG, "group.consumer.max.session.timeout.ms"),
        ([(HEARTBEAT, SET, "15001")], ErrorCode.INVALID_CONFIG, "group.consumer.max.heartbeat.interval.ms"),
        ([(ASSIGNMENT, SET, "-1")], ErrorCode.INVALID_CONFIG, ASSIGNMENT),
        ([(SESSION, SET, "soon")], ErrorCode.INVALID_CONFIG, SESSION),
        ([(SESSION, SET, None)], ErrorCode.INVALID_REQUEST, SESSION),
        ([(SESSION, APPEND, "1")], ErrorCode.INVALID_CONFIG, "not LIST"),
        ([(f"group.{SESSION}", SET, "50000")], ErrorCode.INVALID_CONFIG, "Unknown group config name"),
        ([("share.session.timeout.ms", SET, "50000")], ErrorCode.INVALID_CONFIG, "share groups are not built"),
    ],
)
async def test_invalid_changes_are_refused(
    wire: Wire, operations: list[tuple[str, int, str | None]], code: ErrorCode, why: str
) -> None:
    response = await change(wire, GROUP, NAME, *operations)

    assert response.error_code == code
    assert why in (response.error_message or "")
    assert await own_values(wire, GROUP, NAME) == {}


async def test_a_session_outlasts_a_heartbeat_interval(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path), "group.consumer.min.session.timeout.ms": "1000"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        response = await change(wire, GROUP, NAME, (SESSION, SET, "5000"))

    assert response.error_code == ErrorCode.INVALID_CONFIG
    assert response.error_message == f"{SESSION} must be greater than {HEARTBEAT}"


async def test_a_group_has_a_name(wire: Wire) -> None:
    assert (await change(wire, GROUP, "", (SESSION, SET, "50000"))).error_code == ErrorCode.INVALID_REQUEST
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, "", None)])
    [result] = (await wire.ask(request, 4)).results
    assert result.error_code == ErrorCode.INVALID_REQUEST


async def test_validating_changes_nothing(wire: Wire) -> None:
    response = await change(wire, GROUP, NAME, (SESSION, SET, "50000"), validate_only=True)

    assert response.error_code == ErrorCode.NONE
    assert await own_values(wire, GROUP, NAME) == {}


async def test_they_survive_a_restart(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await set_to(wire, GROUP, NAME, consumer_heartbeat_interval_ms="7000")

    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await find_coordinator(wire, NAME)
        assert await own_values(wire, GROUP, NAME) == {HEARTBEAT: "7000"}
        assert await heartbeat_interval(wire, NAME) == 7_000
