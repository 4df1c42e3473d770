from __future__ import annotations

import pytest

from odradek.broker.handlers.elect_leaders import error_response
from odradek.protocol.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from tests.handlers.requests import create
from tests.wire import Wire

PREFERRED, UNCLEAN = 0, 1
REFUSED = ErrorCode.POLICY_VIOLATION
Codes = dict[str, dict[int, int]]


async def elect(
    wire: Wire, topics: dict[str, list[int]] | None, kind: int = PREFERRED, version: int = 2
) -> ElectLeadersResponse:
    wanted = None if topics is None else [TopicPartitions(*topic) for topic in topics.items()]
    response = await wire.ask(ElectLeadersRequest(kind, wanted, 5000), version)
    assert isinstance(response, ElectLeadersResponse)
    return response


def codes(response: ElectLeadersResponse) -> Codes:
    return {
        topic.topic: {row.partition_id: row.error_code for row in topic.partition_result}
        for topic in response.replica_election_results
    }


@pytest.mark.parametrize(("version", "kind"), [(0, PREFERRED), (1, PREFERRED), (2, PREFERRED), (1, UNCLEAN)])
async def test_a_led_partition_needs_no_election(wire: Wire, version: int, kind: int) -> None:
    await create(wire, "t", 2)

    response = await elect(wire, {"t": [0, 1, 7], "missing": [0]}, kind, version)

    needless, unknown = int(ErrorCode.ELECTION_NOT_NEEDED), int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert codes(response) == {"t": {0: needless, 1: needless, 7: unknown}, "missing": {0: unknown}}
    assert response.error_code == ErrorCode.NONE


async def test_for_all_partitions_only_elections_are_listed(wire: Wire) -> None:
    await create(wire, "t", 2)

    assert codes(await elect(wire, None)) == {"t": {}}


async def test_other_election_types_are_refused(wire: Wire) -> None:
    await create(wire, "t")

    response = await elect(wire, {"t": [0]}, 2)

    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert codes(response) == {"t": {0: ErrorCode.INVALID_REQUEST}}


@pytest.mark.parametrize("version", range(3))
def test_a_refused_request_is_answered_in_every_version(version: int) -> None:
    request = ElectLeadersRequest(PREFERRED, [TopicPartitions("t", [0])])

    response = decode(ElectLeadersResponse, version, encode(error_response(request, REFUSED, "it only reads"), version))

    assert codes(response) == {"t": {0: REFUSED}}
    assert response.error_code == (REFUSED if version else ErrorCode.NONE)
