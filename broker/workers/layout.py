"""The worker that each partition belongs to. Pure functions.

| partition `i` of a topic with | belongs to worker |
|---|---|
| several partitions | `i` mod `num.workers`, as a broker places the partitions of a new topic |
| one partition | the one with the fewest; topics choose by name, and stay if they are on one of those |
| several replicas on this machine | as it is; only those on removed workers go to the next workers from `i` on |

The result does not change when it is computed again after the moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from odradek.broker.config.workers import NODE_IDS_APART, node_id
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.protocol.plural import pluralize


class SpreadRefusedError(Exception):
    """Partitions cannot be moved between workers; the message is a sentence for the operator."""


class MovedPartition(NamedTuple):
    """A partition of which replicas move: `workers` has the new worker by the present one."""

    topic: TopicImage
    partition: int
    workers: Mapping[int, int]


class Fleet:
    """The workers of one machine in a cluster: those that exist, by number, and the node id of the first."""

    def __init__(self, first_node_id: int, workers: Collection[int]) -> None:
        self.workers = sorted(workers)
        self._first = first_node_id
        self._by_node_id = {node_id(first_node_id, worker): worker for worker in workers}

    def node_id(self, worker: int) -> int:
        return node_id(self._first, worker)

    def worker_of(self, broker: int) -> int | None:
        """Return the worker with a node id, None for a broker of another machine."""
        return self._by_node_id.get(broker)

    def replicas(self, partition: PartitionImage) -> list[int]:
        """Return the workers that have a replica, in the order of the assignment."""
        workers = (self.worker_of(broker) for broker in partition.replicas)
        return [worker for worker in workers if worker is not None]

    def counts(self, image: MetadataImage) -> dict[int, int]:
        """Return the number of replicas of each worker."""
        counts = dict.fromkeys(self.workers, 0)
        for topic in image.topics.values():
            for partition in topic.partitions:
                for worker in self.replicas(partition):
                    counts[worker] += 1
        return counts


def alone_in_store(image: MetadataImage, first_node_id: int) -> set[int]:
    """Return the workers with replicas or a record in a store that has brokers of one machine only."""
    brokers = {*image.known}
    for topic in image.topics.values():
        for partition in topic.partitions:
            brokers.update(partition.replicas)
    return {(each - first_node_id) // NODE_IDS_APART for each in brokers if _is_worker(each, first_node_id)}


def _is_worker(broker: int, first_node_id: int) -> bool:
    return broker >= first_node_id and (broker - first_node_id) % NODE_IDS_APART == 0


def moves(image: MetadataImage, fleet: Fleet, count: int) -> list[MovedPartition]:
    """Return the partitions that move when the machine has `count` workers, by topic and number.

    Raises `SpreadRefusedError` for a partition with more replicas here than workers.
    """
    counts = [0] * count
    alone: list[tuple[TopicImage, int]] = []  # of topics with one partition, with their worker
    moved = []
    for _, topic in sorted(image.topics.items()):
        for index, partition in enumerate(topic.partitions):
            here = fleet.replicas(partition)
            if len(here) == 1 and len(topic.partitions) == 1:
                alone.append((topic, here[0]))
                continue
            workers = {here[0]: index % count} if len(here) == 1 else _several(topic, index, here, count)
            for worker in here:
                counts[workers.get(worker, worker)] += 1
            moved.append(MovedPartition(topic, index, workers))
    for topic, worker in alone:
        fewest = min(counts)
        target = worker if worker < count and counts[worker] == fewest else counts.index(fewest)
        counts[target] += 1
        moved.append(MovedPartition(topic, 0, {worker: target}))
    changed = [each._replace(workers={old: new for old, new in each.workers.items() if old != new}) for each in moved]
    return sorted((each for each in changed if each.workers), key=lambda each: (each.topic.name, each.partition))


def _several(topic: TopicImage, index: int, here: Sequence[int], count: int) -> dict[int, int]:
    """Return where the replicas on removed workers go; there may be no replica here."""
    free = [worker for number in range(count) if (worker := (index + number) % count) not in here]
    leaving = [worker for worker in here if worker >= count]
    if len(leaving) > len(free):
        raise SpreadRefusedError(
            f"{topic.name}-{index} has {pluralize(len(here), 'replica')} on this machine,"
            f" more than num.workers = {count}: reassign it to fewer of its brokers first"
        )
    return dict(zip(leaving, free, strict=False))
