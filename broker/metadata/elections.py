"""Elections on an administrator's request (KIP-183, KIP-460). Any broker runs them; all others are the controller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leadership import NO_LEADER, choose_unclean, prefer
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Put, still
from odradek.broker.metadata.topics import find_partition
from odradek.broker.metadata.values import PartitionState, encode
from odradek.protocol.errors import ErrorCode, KafkaError


class Election(NamedTuple):
    """A kind of election: its condition, its choice, and the error if no replica can be elected."""

    is_needed: Callable[[PartitionImage], bool]
    choose: Callable[[PartitionImage, Mapping[int, BrokerImage]], PartitionState | None]
    no_candidate_error: ErrorCode


PREFERRED = Election(
    lambda partition: partition.leader != partition.replicas[0], prefer, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
)
"""Elects the preferred replica, which is the first of the assignment, if it is in sync."""
UNCLEAN = Election(
    lambda partition: partition.leader == NO_LEADER, choose_unclean, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
)
"""Elects any live replica where there is no leader, although records may be lost."""


async def elect(metadata: Metadata, topic: str, index: int, election: Election) -> None:
    """Run an election for a partition, and return when the image has the outcome.

    Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, the election's `no_candidate_error`,
    KAFKA_STORAGE_ERROR.
    """
    while True:
        image = metadata.image
        partition = find_partition(image, topic, index)
        if not election.is_needed(partition):
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{topic}-{index} is led by {partition.leader}")
        state = election.choose(partition, image.brokers)
        if state is None:
            raise KafkaError(
                election.no_candidate_error, f"of the replicas {partition.replicas} of {topic}-{index} none can lead"
            )
        key = metadata.keys.partition_state(image.topics[topic].topic_id, index)
        put = Put(key, encode(state, partition.state_value))
        if (await metadata.commit((still(key, partition.state_revision),), (put,))).ok:
            return
