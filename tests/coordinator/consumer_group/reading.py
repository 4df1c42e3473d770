"""The reads and commits of the members of a simulated group: a log for each partition, which grows.

A member reads from where it is; a partition that is new to it, from the group's committed offset. What it commits is
taken if the group lets it. What must hold: a commit that is taken never goes back, because none but the owner's is; and
in the end every record was processed at least once.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Protocol

from odradek.broker.coordinator.group_type import Committer
from odradek.protocol.errors import KafkaError
from tests.coordinator.consumer_group.transcript import Group

Partition = tuple[bytes, int]

_READ_AT_ONCE = 20
_COMMITS = 0.3
"""The probability that a member commits its positions, each time."""


class Reader(Protocol):
    """The part of a client that is needed here."""

    member_id: str
    instance_id: str | None
    owned: set[Partition]

    @property
    def generation(self) -> int: ...


class Reading:
    """The logs of all topics."""

    def __init__(self, group: Group, draw: random.Random) -> None:
        self._group = group
        self._random = draw
        topics = group.image.topics.values()
        self._ends = {(topic.topic_id, number): 0 for topic in topics for number in range(len(topic.partitions))}
        self._committed: dict[Partition, int] = {}
        self._positions: defaultdict[str, dict[Partition, int]] = defaultdict(dict)
        self._processed: Counter[tuple[Partition, int]] = Counter()

    def produce(self) -> None:
        """Add some records to some partition."""
        self._ends[self._random.choice(list(self._ends))] += self._random.randrange(5)

    def read(self, reader: Reader) -> None:
        """Let a client process the partitions that it takes for its own, and perhaps commit."""
        positions = self._positions[reader.member_id]
        for partition, position in positions.items():
            end = min(position + _READ_AT_ONCE, self._ends[partition])
            self._processed.update((partition, offset) for offset in range(position, end))
            positions[partition] = end
        if positions and self._random.random() < _COMMITS:
            self._commit(reader, positions)

    def follow(self, reader: Reader) -> None:
        """Forget the positions in partitions that the client has revoked, and look up those in new ones."""
        positions = self._positions[reader.member_id]
        self._positions[reader.member_id] = {
            partition: positions.get(partition, self._committed.get(partition, 0)) for partition in reader.owned
        }

    def unread(self, topic_ids: Iterable[bytes]) -> set[tuple[Partition, int]]:
        """Return the records of these topics that no client has processed."""
        wanted = set(topic_ids)
        return {
            (partition, offset)
            for partition, end in self._ends.items()
            for offset in range(end)
            if partition[0] in wanted and not self._processed[partition, offset]
        }

    def _commit(self, reader: Reader, positions: dict[Partition, int]) -> None:
        committer = Committer(reader.member_id, reader.instance_id, reader.generation, 9, is_transactional=False)
        names = [(self._group.image.topics_by_id[topic_id].name, number) for topic_id, number in positions]
        try:
            self._group.group.check_commit(committer, names)
        except KafkaError:
            return
        for partition, position in positions.items():
            assert position >= self._committed.get(partition, 0), f"{reader.member_id} takes back {partition}"
        self._committed.update(positions)
