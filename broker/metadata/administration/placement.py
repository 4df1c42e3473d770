"""The placement of the replicas of new partitions: by rule, or as the client assigns them. Pure functions.

```
brokers 1 2 3 4 5, racks a b c a b      order of placement: 1a 2b 3c 4a 5b      the racks take turns
  partition 0   1a 2b 3c                the first replica of partition i is on the i-th broker, modulo their number;
  partition 1   2b 3c 4a                the others follow in that order, but a broker is passed over
  partition 3   4a 5b 3c                while its rack holds a replica and the rack of a later one holds none
```

The rule uses live brokers. If there are too few, known brokers that are down follow, in the same order: they get their
replicas when they return, as in Kafka with KRaft. At least one replica is on a live broker. When a topic grows, `first`
is the number of its first new partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize

DEFAULT = -1
MAX_PARTITIONS = 10_000
"""The most partitions that one request may create: Kafka's MAX_PARTITIONS_PER_BATCH."""
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."

Racks = Mapping[int, str | None]
"""The racks of brokers, by node id. Brokers without a rack are in one rack."""


class Candidates(NamedTuple):
    """The brokers that may hold replicas: those that serve, and those that are known but down, or about to stop."""

    live: Racks
    down: Racks

    @classmethod
    def of(cls, image: MetadataImage) -> Candidates:
        live = {node_id: broker.rack for node_id, broker in image.brokers.items() if not broker.is_draining}
        known = {node_id: broker.rack for node_id, broker in image.known.items()}
        known |= {node_id: broker.rack for node_id, broker in image.brokers.items()}
        return cls(live, {node_id: rack for node_id, rack in known.items() if node_id not in live})


def place(partitions: int, replication_factor: int, brokers: Candidates, first: int = 0) -> list[list[int]]:
    """Return the replicas of each new partition, by the rule of the module; replicas on live brokers come first.

    Raises `KafkaError` INVALID_PARTITIONS, POLICY_VIOLATION, INVALID_REPLICATION_FACTOR.
    """
    if partitions < 1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"a topic has at least one partition, not {partitions}")
    check_count(partitions)
    if replication_factor < 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"the replication factor is at least 1, not {replication_factor}"
        )
    if not brokers.live:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "no broker is alive")
    known = len(brokers.live) + len(brokers.down)
    if replication_factor > known:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor is {replication_factor},"
            f" but only {pluralize(known, 'broker is', 'brokers are')} known",
        )
    live, down = _order(brokers.live), _order(brokers.down)
    wanted = range(first, first + partitions)
    return [
        [
            *_pick(live, brokers.live, number, replication_factor),
            *_pick(down, brokers.down, number, replication_factor - len(live)),
        ]
        for number in wanted
    ]


def _order(brokers: Racks) -> list[int]:
    """Return the brokers in the order of placement: the racks, by their lowest node id, take turns."""
    by_rack: dict[str | None, list[int]] = {}
    for node_id in sorted(brokers):
        by_rack.setdefault(brokers[node_id], []).append(node_id)
    return [node_id for turn in zip_longest(*by_rack.values()) for node_id in turn if node_id is not None]


def _pick(order: Sequence[int], racks: Racks, number: int, count: int) -> list[int]:
    """Return up to `count` brokers for partition `number`: in order from its own place on, racks without one first."""
    if not order or count <= 0:
        return []
    start = number % len(order)
    if len(set(racks.values())) == 1:
        return [order[(start + j) % len(order)] for j in range(min(count, len(order)))]
    left = [*order[start:], *order[:start]]
    used: Counter[str | None] = Counter()
    picked: list[int] = []
    while left and len(picked) < count:
        least = min(used[racks[node_id]] for node_id in left)
        chosen = next(node_id for node_id in left if used[racks[node_id]] == least)
        left.remove(chosen)
        used[racks[chosen]] += 1
        picked.append(chosen)
    return picked


def place_as_assigned(assignments: Mapping[int, Sequence[int]], brokers: Candidates, first: int = 0) -> list[list[int]]:
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


def check_replicas(index: int, replicas: list[int], brokers: Candidates) -> None:
    """Raise `KafkaError` INVALID_REPLICA_ASSIGNMENT if a partition cannot have these replicas."""
    if not replicas:
        raise _invalid(f"partition {index} has no replicas")
    for position, node_id in enumerate(replicas):
        if node_id not in brokers.live and node_id not in brokers.down:
            raise _invalid(f"partition {index} has a replica on broker {node_id}, which is not known")
        if node_id in replicas[:position]:
            raise _invalid(f"partition {index} has two replicas on broker {node_id}")
    if not any(node_id in brokers.live for node_id in replicas):
        raise _invalid(f"partition {index} has replicas on {replicas}, none of which is alive")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
