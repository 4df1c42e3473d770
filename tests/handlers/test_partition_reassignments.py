"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import create
from tests.wire import Wire


async def reassign(
    wire: Wire, topic: str, index: int, replicas: list[int] | None, *, free: bool = True, version: int = 1
) -> int:
    wanted = [ReassignableTopic(topic, [ReassignablePartition(index, replicas)])]
    response = await wire.ask(AlterPartitionReassignmentsRequest(5000, free, wanted), version)
    assert (response.error_code, response.allow_replication_factor_change) == (ErrorCode.NONE, free)
    [found] = response.responses
    [row] = found.partitions
    assert (found.name, row.partition_index) == (topic, index)
    code: int = row.error_code
    return code


@pytest.mark.parametrize("version", range(2))
async def test_the_current_replicas_are_accepted(wire: Wire, version: int) -> None:
    await create(wire, "t")

    assert await reassign(wire, "t", 0, [1], version=version) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("t", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 1, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_invalid_requests_are_refused(
    wire: Wire, topic: str, index: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    await create(wire, "t")

    assert await reassign(wire, topic, index, replicas) == code


async def test_the_number_of_replicas_changes_only_if_the_request_allows_it(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t")

    assert await reassign(wire, "t", 0, [SELF, OTHER]) == ErrorCode.NONE
    assert await reassign(wire, "t", 0, [SELF], free=False) == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_ongoing_reassignments_are_listed(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", 2)
    await create(wire, "u")
    publish(broker, "t", adding_replicas=[OTHER])
    moving = [OngoingTopicReassignment("t", [OngoingPartitionReassignment(0, [SELF, OTHER], [OTHER], [])])]

    for topics, expected in (
        (None, moving),
        ([("t", [0, 1, 9]), ("u", [0]), ("missing", [0])], moving),
        ([("t", [1])], []),
        ([], []),
    ):
        wanted = None if topics is None else [ListPartitionReassignmentsTopics(*topic) for topic in topics]
        response = await wire.ask(ListPartitionReassignmentsRequest(5000, wanted), 0)
        assert (response.error_code, response.topics) == (ErrorCode.NONE, expected)
