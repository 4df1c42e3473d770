"""The offsets of a stream in its checkpoint: those of Spark's connector, with the ids of topics.

```
{"orders": {"0": 12, "1": 7}, "orders:Zq3nXbqNTgWBc0mGk2hhVw": {}}
  topic       partition: exclusive end         topic:id
```
The connector reads a name of a topic with a map of its partitions, so it reads an entry with an id as a topic without
partitions, which changes nothing. A colon is not allowed in the name of a topic. So a query can stop with one format
and continue with the other; the connector writes no ids, and without an id nothing is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Self

from odradek.pipeline.options.bounds import Numbers, flat_offsets, nested_offsets

Offsets = dict[str, dict[str, int]]

_SEPARATOR = ":"


class StreamOffsets(NamedTuple):
    """An offset for each partition, and the id of each topic that has one."""

    numbers: Numbers
    topic_ids: Mapping[str, str]

    @classmethod
    def from_json(cls, given: Offsets) -> Self:
        """Parse the object that `to_json` returns, or that the connector has written."""
        ids = dict(name.split(_SEPARATOR, 1) for name in given if _SEPARATOR in name)
        return cls(flat_offsets(given), ids)

    def to_json(self) -> Offsets:
        """Return the object that Spark stores as JSON; always in the same order, because Spark compares the text."""
        topics = sorted({partition.topic for partition in self.numbers} & self.topic_ids.keys())
        return nested_offsets(self.numbers) | {f"{topic}{_SEPARATOR}{self.topic_ids[topic]}": {} for topic in topics}

    def recreated(self, later: StreamOffsets) -> list[str]:
        """Return the topics that have another id in `later`, in order."""
        ids = later.topic_ids
        return sorted(topic for topic, known in self.topic_ids.items() if ids.get(topic, known) != known)

    def keeping(self, topics: Collection[str], earlier: StreamOffsets) -> Self:
        """Return these offsets, with the earlier ones of some topics."""
        others, ids = self.without(topics), earlier.topic_ids
        return others._replace(
            numbers=others.numbers | {one: offset for one, offset in earlier.numbers.items() if one.topic in topics},
            topic_ids={**others.topic_ids, **{topic: ids[topic] for topic in topics if topic in ids}},
        )

    def without(self, topics: Collection[str]) -> Self:
        """Return the offsets of all other topics."""
        return self._replace(
            numbers={one: offset for one, offset in self.numbers.items() if one.topic not in topics},
            topic_ids={topic: id_ for topic, id_ in self.topic_ids.items() if topic not in topics},
        )
