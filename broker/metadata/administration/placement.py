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

Several brokers may be workers of one machine, a host, and fail with it. So a broker is also passed over, always, if its
host holds a replica already, unless `workers.count.as.brokers` is set. A broker that is no worker fails alone.

If the broker that the rule chooses first for a topic of one partition is a worker, the worker of its host that leads
the fewest partitions takes its place: otherwise every such topic would be led by the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from odradek.broker.metadata.administration.leader_counts import LeaderCounts
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize

DEFAULT = -1
MAX_PARTITIONS = 10_000
"""The most partitions that one request may create: Kafka's MAX_PARTITIONS_PER_BATCH."""
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."
ONE_HOST = "several are workers of one host, which fail together (unless workers.count.as.brokers is true)"

Racks = Mapping[int, str | None]
"""The racks of brokers, by node id. Brokers without a rack are in one rack."""


class Candidates(NamedTuple):
    """The brokers that may hold replicas: those that serve, and those that are known but down, or about to stop.

    `hosts`: the machines of those that are workers, by node id. `workers_count_as_brokers`: a host may hold several
    replicas of a partition.
    """

    live: Racks
    down: Racks
    hosts: Mapping[int, str] = {}
    workers_count_as_brokers: bool = False

    @classmethod
    def of(cls, image: MetadataImage, *, workers_count_as_brokers: bool = False) -> Candidates:
        live = {node_id: broker.rack for node_id, broker in image.brokers.items() if not broker.is_draining}
        known = {node_id: broker.rack for node_id, broker in image.known.items()}
        known |= {node_id: broker.rack for node_id, broker in image.brokers.items()}
        hosts = {node_id: host for node_id in known if (host := image.host_of(node_id))}
        down = {node_id: rack for node_id, rack in known.items() if node_id not in live}
        return cls(live, down, hosts, workers_count_as_brokers)

    @property
    def hosts_apart(self) -> Mapping[int, str]:
        """The hosts of workers, by node id, if a host holds at most one replica of a partition."""
        return {} if self.workers_count_as_brokers else self.hosts


def place(
    partitions: int,
    replication_factor: int,
    brokers: Candidates,
    first: int = 0,
    leaders: LeaderCounts | None = None,
) -> list[list[int]]:
    """Return the replicas of each new partition, by the rule of the module; replicas on live brokers come first.

    `leaders`: of the present topics, if this is a new one. Raises `KafkaError` INVALID_PARTITIONS, POLICY_VIOLATION,
    INVALID_REPLICATION_FACTOR.
    """
    if partitions < 1:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions was set to an invalid non-positive value. ({partitions})",
        )
    check_count(partitions)
    _check_factor(replication_factor, brokers)
    live, down, hosts = _order(brokers.live), _order(brokers.down), brokers.hosts_apart
    if partitions == 1 and leaders is not None:
        first = live.index(_idlest_worker(live, brokers.hosts, leaders))
    placed = []
    for number in range(first, first + partitions):
        picked = _pick(live, brokers.live, hosts, number, replication_factor)
        if len(picked) < replication_factor:
            used = {hosts[node_id] for node_id in picked if node_id in hosts}
            left = [node_id for node_id in down if hosts.get(node_id) not in used] if used else down
            picked += _pick(left, brokers.down, hosts, number, replication_factor - len(picked))
        placed.append(picked)
    return placed


def _idlest_worker(order: Sequence[int], hosts: Mapping[int, str], leaders: LeaderCounts) -> int:
    """Return the first broker, or instead of a worker the one of its host that leads the fewest partitions."""
    host = hosts.get(order[0])
    if host is None:
        return order[0]
    return min((node_id for node_id in order if hosts.get(node_id) == host), key=lambda each: (leaders.of(each), each))


def _check_factor(replication_factor: int, brokers: Candidates) -> None:
    """Raise `KafkaError` INVALID_REPLICATION_FACTOR if partitions cannot have as many replicas."""
    if replication_factor < 1:
        raise _invalid_factor("Replication factor must be larger than 0, or -1 to use the default value.")
    if not brokers.live:
        raise _invalid_factor("no broker is alive")
    known = [*brokers.live, *brokers.down]
    if replication_factor > len(known):
        raise _invalid_factor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of"
            f" {replication_factor} cannot be reached because only {len(known)} broker(s) are registered"
            " or some brokers have all their log directories cordoned."
        )
    hosts = len(known) - sharing(known, brokers.hosts_apart)
    if replication_factor > hosts:
        raise _invalid_factor(
            f"Unable to replicate the partition {replication_factor} time(s): the {len(known)} known brokers run on"
            f" {pluralize(hosts, 'host')}: workers of one host fail together, so that it holds at most one replica of a"
            " partition (unless workers.count.as.brokers is true)"
        )


def sharing(replicas: Collection[int], hosts: Mapping[int, str]) -> int:
    """Return how many of the replicas are on a host that already holds another one."""
    workers = [hosts[node_id] for node_id in replicas if node_id in hosts]
    return len(workers) - len(set(workers))


def _order(brokers: Racks) -> list[int]:
    """Return the brokers in the order of placement: the racks, by their lowest node id, take turns."""
    by_rack: dict[str | None, list[int]] = {}
    for node_id in sorted(brokers):
        by_rack.setdefault(brokers[node_id], []).append(node_id)
    return [node_id for turn in zip_longest(*by_rack.values()) for node_id in turn if node_id is not None]


def _pick(order: Sequence[int], racks: Racks, hosts: Mapping[int, str], number: int, count: int) -> list[int]:
    """Return up to `count` brokers for partition `number`: in order from its own place on, racks without one first.

    A host of `hosts` gets at most one.
    """
    if not order or count <= 0:
        return []
    start = number % len(order)
    if count == 1:
        return [order[start]]
    if not hosts and len(set(racks.values())) == 1:
        return [order[(start + j) % len(order)] for j in range(min(count, len(order)))]
    left = [*order[start:], *order[:start]]
    used: Counter[str | None] = Counter()
    picked: list[int] = []
    while left and len(picked) < count:
        least = min(used[racks[node_id]] for node_id in left)
        chosen = next(node_id for node_id in left if used[racks[node_id]] == least)
        host = hosts.get(chosen)
        left = [node_id for node_id in left if node_id != chosen and (host is None or hosts.get(node_id) != host)]
        used[racks[chosen]] += 1
        picked.append(chosen)
    return picked


def place_as_assigned(assignments: Mapping[int, Sequence[int]], brokers: Candidates, first: int = 0) -> list[list[int]]:
    """Return the replicas of each new partition as a client assigned them.

    Raises `KafkaError` INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION.
    """
    check_count(len(assignments))
    if sorted(assignments) != list(range(first, first + len(assignments))):
        raise _invalid(f"partitions should be a consecutive {first}-based integer sequence")
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
        raise _invalid(f"The manual partition assignment includes an empty replica list. (partition {index})")
    for position, node_id in enumerate(replicas):
        if node_id not in brokers.live and node_id not in brokers.down:
            raise _invalid(
                f"The manual partition assignment includes broker {node_id}, but no such broker is registered."
            )
        if node_id in replicas[:position]:
            raise _invalid(f"The manual partition assignment includes the broker {node_id} more than once.")
    if not any(node_id in brokers.live for node_id in replicas):
        raise _invalid(f"partition {index} has replicas on {replicas}, none of which is alive")
    if sharing(replicas, brokers.hosts_apart):
        raise _invalid(f"partition {index} has replicas on {replicas}: {ONE_HOST}")


def _invalid_factor(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, detail)


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
