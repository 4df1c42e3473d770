"""The placement of the replicas of new partitions: by rule, or as the client assigns them. Pure functions.

When a topic grows, `first` is the number of its first new partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize

DEFAULT = -1
MAX_PARTITIONS = 10_000
"""The most partitions that one request may create: Kafka's MAX_PARTITIONS_PER_BATCH."""
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."


def place(partitions: int, replication_factor: int, brokers: Collection[int], first: int = 0) -> list[list[int]]:
    """Return the replicas of each new partition: the j-th of partition i is on live broker (i + j) mod n.

    Raises `KafkaError` INVALID_PARTITIONS, POLICY_VIOLATION, INVALID_REPLICATION_FACTOR.
    """
    if partitions < 1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"a topic has at least one partition, not {partitions}")
    check_count(partitions)
    if replication_factor < 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"the replication factor is at least 1, not {replication_factor}"
        )
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor is {replication_factor},"
            f" but only {pluralize(len(brokers), 'broker serves', 'brokers serve')}",
        )
    ids = sorted(brokers)
    numbers = range(first, first + partitions)
    return [[ids[(i + j) % len(ids)] for j in range(replication_factor)] for i in numbers]


def place_as_assigned(
    assignments: Mapping[int, Sequence[int]], brokers: Collection[int], first: int = 0
) -> list[list[int]]:
    """Return the replicas of each new partition as a client assigned them.

    Raises `KafkaError` INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION.
    """
    check_count(len(assignments))
    if sorted(assignments) != list(range(first, first + len(assignments))):
        raise _invalid(f"partitions must be numbered from {first} without gaps")
    placed = [list(assignments[index]) for index in sorted(assignments)]
    for index, replicas in enumerate(placed, first):
        check_replicas(index, replicas, brokers)
        if len(replicas) != len(placed[0]):
            raise _invalid(
                f"partition {index} has {pluralize(len(replicas), 'replica')}, partition {first} has {len(placed[0])}: "
                "all must have the same number"
            )
    return placed


def check_count(partitions: int) -> None:
    """Raise `KafkaError` POLICY_VIOLATION for more partitions than one request may create."""
    if partitions > MAX_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)


def check_replicas(index: int, replicas: list[int], brokers: Collection[int]) -> None:
    """Raise `KafkaError` INVALID_REPLICA_ASSIGNMENT if a partition cannot have these replicas."""
    if not replicas:
        raise _invalid(f"partition {index} has no replicas")
    for position, node_id in enumerate(replicas):
        if node_id not in brokers:
            raise _invalid(f"partition {index} has a replica on broker {node_id}, which does not serve")
        if node_id in replicas[:position]:
            raise _invalid(f"partition {index} has two replicas on broker {node_id}")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
