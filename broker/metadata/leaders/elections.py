"""Elections on an administrator's request (KIP-183, KIP-460), and the periodic return to preferred leaders.

Any broker runs an election on request. Only the controller returns leadership to preferred replicas, every
`leader.imbalance.check.interval.seconds`; Kafka's controller does the same. All other elections are in `controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from odradek.broker.metadata.image import BrokerImage, MetadataImage, PartitionImage
from odradek.broker.metadata.leaders.leadership import NO_LEADER, Decision, choose_unclean, prefer
from odradek.broker.metadata.leaders.requested_changes import change_on_request
from odradek.broker.metadata.leaders.state_changes import StateChange, transactions
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import created_at
from odradek.broker.metadata.values import PartitionState
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize

_LOG = StructuredLogger(__name__)

PARTITIONS_AT_ONCE: Final = 100
"""The most partitions for which `elect` should be called at once: one transaction, and less than a millisecond."""


class Election(NamedTuple):
    """A kind of election: its condition, its choice, and the error if no replica can be elected."""

    is_needed: Callable[[PartitionImage], bool]
    choose: Callable[[PartitionImage, Mapping[int, BrokerImage]], PartitionState | None]
    no_candidate_error: ErrorCode
    may_lose: bool = False


PREFERRED = Election(
    lambda partition: partition.leader != partition.replicas[0], prefer, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
)
"""Elects the preferred replica, which is the first of the assignment, if it is in sync."""
UNCLEAN = Election(
    lambda partition: partition.leader == NO_LEADER,
    choose_unclean,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    may_lose=True,
)
"""Elects any live replica where there is no leader, although records may be lost."""

NOT_NEEDED = "Leader election not needed for topic partition."
"""Kafka's text, which `kafka-leader-election.sh` prints."""


async def elect(
    metadata: Metadata, partitions: Sequence[tuple[str, int]], election: Election
) -> list[KafkaError | None]:
    """Run an election for each of these partitions, and return when the image has the outcome.

    Returns the error of each: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, the election's `no_candidate_error`;
    None if a leader was elected. Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT.
    """
    different = list(dict.fromkeys(partitions))
    errors = await change_on_request(metadata, different, partial(_decide, election), partial(_log, election))
    by_partition = dict(zip(different, errors, strict=True))
    return [by_partition[each] for each in partitions]


def _decide(election: Election, image: MetadataImage, wanted: tuple[str, int]) -> StateChange:
    name, index = wanted
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partition(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if not election.is_needed(partition):
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
    state = election.choose(partition, image.brokers)
    if state is None:
        raise KafkaError(
            election.no_candidate_error, f"of the replicas {partition.replicas} of {name}-{index} none can lead"
        )
    return StateChange(topic, index, Decision(state))


def _log(election: Election, changes: Sequence[StateChange]) -> None:
    if election.may_lose:
        _LOG.warning("records may be lost: unclean elections on request", partitions=", ".join(map(str, changes)))


async def balance_leaders(metadata: Metadata) -> None:
    """Elect the preferred replicas that are in sync but do not lead, if this broker is the controller.

    Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT.
    """
    image = metadata.image
    if image.controller_id != metadata.config.node_id:
        return
    guard = created_at(metadata.keys.controller, image.controller_epoch)
    count = 0
    for transaction in transactions(metadata.keys, image.brokers, _imbalanced(image), guard):
        # What was refused has changed meanwhile; the next call sees it again.
        if (await metadata.commit(transaction.when, transaction.then)).ok:
            count += len(transaction.changes)
    if count:
        _LOG.info("preferred leaders elected", count=pluralize(count, "partition"))


def _imbalanced(image: MetadataImage) -> Iterator[StateChange]:
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if PREFERRED.is_needed(partition):
                state = prefer(partition, image.brokers)
                if state is not None:
                    yield StateChange(topic, index, Decision(state))
