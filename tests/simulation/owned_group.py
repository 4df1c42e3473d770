"""The assignments and commits of the members of one group, and the contradictions in them.

| event | contradiction |
|---|---|
| an assignment | another member owns one of its partitions in the same generation (or member epoch) |
| a fetched offset | below one that was committed, or fetched, in the same or an earlier generation |

The members commit in a way that lets no offset of a partition ever fall: see `members`. A deposed coordinator may
answer with what held before later generations, so an offset is compared with those of its own and earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

LATEST = 1 << 31
"""A generation above all."""


class OwnedGroup:
    """One group of one topic. `fail` is called with each contradiction."""

    def __init__(self, name: str, fail: Callable[[str], None]) -> None:
        self.name = name
        self.commits = 0  # that were acknowledged
        self._fail = fail
        self._owners: dict[tuple[int, int], str] = {}  # by (generation, partition)
        self._offsets: dict[tuple[int, int], int] = {}  # the highest by (generation, partition)

    @property
    def partitions(self) -> set[int]:
        """The partitions with an offset."""
        return {partition for _, partition in self._offsets}

    @property
    def generations(self) -> int:
        """The number of generations in which a member owned something."""
        return len({generation for generation, _ in self._owners})

    def assigned(self, member: str, generation: int, partitions: Collection[int]) -> None:
        """Record that a member was told what it owns."""
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                self._fail(f"group {self.name}: {owner} and {member} own {partition} in generation {generation}")

    def committed(self, partition: int, generation: int, offset: int) -> None:
        """Record the acknowledgement of a commit."""
        self.commits += 1
        self._raise(partition, generation, offset)

    def least(self, generation: int) -> dict[int, int]:
        """Return the least offsets that a fetch in a generation may return, if it is sent now."""
        found: dict[int, int] = {}
        for (each, partition), offset in self._offsets.items():
            if each <= generation:
                found[partition] = max(offset, found.get(partition, -1))
        return found

    def fetched(self, partition: int, generation: int, offset: int, least: Mapping[int, int]) -> None:
        """Record a fetched offset; `least` is what held when it was requested."""
        if offset < least.get(partition, -1):
            self._fail(
                f"group {self.name}: {partition} is at {offset} in generation {generation}, where"
                f" {least[partition]} was committed"
            )
        self._raise(partition, generation, offset)

    def _raise(self, partition: int, generation: int, offset: int) -> None:
        self._offsets[generation, partition] = max(offset, self._offsets.get((generation, partition), -1))
