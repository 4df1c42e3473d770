"""ElectLeaders (43), versions 0–2: elect the preferred leaders (KIP-183), or any live replica (KIP-460).

| type | partition | answer |
|---|---|---|
| preferred (0) | its first replica leads | ELECTION_NOT_NEEDED |
| | its first replica is out of sync or not alive | PREFERRED_LEADER_NOT_AVAILABLE |
| unclean (1) | has a leader | ELECTION_NOT_NEEDED |
| | has no live replica | ELIGIBLE_LEADERS_NOT_AVAILABLE |
| both | does not exist | UNKNOWN_TOPIC_OR_PARTITION |

Null partitions request all; the response then omits partitions that need no election, but names their topics. Version 0
has only preferred elections; any other type is INVALID_REQUEST. The response is sent when the outcome has reached this
broker's image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.leaders.elections import PARTITIONS_AT_ONCE, PREFERRED, UNCLEAN, elect
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_ELECTIONS = {0: PREFERRED, 1: UNCLEAN}


async def handle(services: Services, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if request.election_type not in _ELECTIONS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    wanted = _wanted(services.metadata.image, request)
    results: dict[str, list[PartitionResult]] = {topic: [] for topic, _ in wanted}
    time_slice = services.time_slices.begin(context.connection)
    with time_limit(request.timeout_ms):
        partitions = [(topic, index) for topic, indexes in wanted for index in indexes]
        for first in range(0, len(partitions), PARTITIONS_AT_ONCE):
            await time_slice.step()
            chunk = partitions[first : first + PARTITIONS_AT_ONCE]
            for (topic, _), row in zip(chunk, await _elect(services, request.election_type, chunk), strict=True):
                if request.topic_partitions is not None or row.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                    results[topic].append(row)
    return ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic, rows) for topic, rows in results.items()]
    )


def error_response(request: ElectLeadersRequest, code: ErrorCode, message: str) -> ElectLeadersResponse:
    results = [
        ReplicaElectionResult(
            topic.topic, [PartitionResult(index, code, message or None) for index in topic.partitions]
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


def _wanted(image: MetadataImage, request: ElectLeadersRequest) -> Sequence[tuple[str, Iterable[int]]]:
    if request.topic_partitions is None:
        return [(name, range(len(topic.partitions))) for name, topic in image.topics.items()]
    return [(topic.topic, topic.partitions) for topic in request.topic_partitions]


async def _elect(
    services: Services, election_type: int, partitions: Sequence[tuple[str, int]]
) -> list[PartitionResult]:
    errors: list[KafkaError | None]
    try:
        errors = await elect(services.metadata, partitions, _ELECTIONS[election_type])
    except KafkaError as error:  # of the store: it concerns all of them
        errors = [error] * len(partitions)
    return [
        PartitionResult(index, ErrorCode.NONE, None)
        if error is None
        else PartitionResult(index, error.code, error.detail)
        for (_, index), error in zip(partitions, errors, strict=True)
    ]
