"""The offsets or times at which reading starts and ends, as the options give them, before they are resolved.

| option | JSON or text |
|---|---|
| startingOffsets, endingOffsets | `earliest`, `latest`, or `{"topic": {"0": 23, "1": -2}}`; -2 earliest, -1 latest |
| startingTimestamp, endingTimestamp | ms since the epoch, for every partition |
| startingOffsetsByTimestamp, endingOffsetsByTimestamp | `{"topic": {"0": 1600000000000}}` |

A timestamp takes precedence over timestamps by partition, and these over offsets, as in Spark's connector.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.client.record import TopicPartition

LATEST = -1
EARLIEST = -2

Numbers = dict[TopicPartition, int]


class Bound(NamedTuple):
    """A number for each partition: a time in ms, or an offset, LATEST or EARLIEST. Either `everywhere` or `each`."""

    by_time: bool
    everywhere: int | None
    each: Numbers

    def numbers_of(self, partitions: Iterable[TopicPartition], side: str) -> Numbers:
        """Return the number of each partition; `side` is "starting" or "ending". Raises ValueError."""
        partitions = sorted(partitions)
        if self.everywhere is not None:
            return dict.fromkeys(partitions, self.everywhere)
        if self.each.keys() != set(partitions):
            raise ValueError(
                f"{side}Offsets{'ByTimestamp' if self.by_time else ''} must have a number for each partition that is "
                f"read, and for no other. It has {_names(self.each)}; the query reads {_names(partitions)}"
            )
        return self.each


def bound_at(position: int) -> Bound:
    """Return the bound at EARLIEST or LATEST of every partition."""
    return Bound(by_time=False, everywhere=position, each={})


def read_bound(options: Mapping[str, str], side: str, default: int) -> Bound:
    """Parse the bound of a `side`, "starting" or "ending"; `default` is LATEST or EARLIEST. Raises ValueError."""
    if (text := options.get(f"{side}timestamp")) is not None:
        return Bound(by_time=True, everywhere=_time(f"{side}Timestamp", text), each={})
    if (text := options.get(f"{side}offsetsbytimestamp")) is not None:
        name = f"{side}OffsetsByTimestamp"
        times = read_numbers(name, text)
        if any(time < 0 for time in times.values()):
            raise ValueError(f"{name} has a time below 0: {text}")
        return Bound(by_time=True, everywhere=None, each=times)
    text = options.get(f"{side}offsets", "").strip()
    if not text:
        return bound_at(default)
    if text.lower() in ("earliest", "latest"):
        return bound_at(EARLIEST if text.lower() == "earliest" else LATEST)
    offsets = read_numbers(f"{side}Offsets", text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise ValueError(f"{side}Offsets has a number below -2: {text}")
    return Bound(by_time=False, everywhere=None, each=offsets)


def read_numbers(option: str, text: str) -> Numbers:
    """Parse `{"topic": {"partition": number}}`. Raises ValueError."""
    try:
        return {
            TopicPartition(topic, int(index)): _integer(number)
            for topic, numbers in json.loads(text).items()
            for index, number in numbers.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f'{option} must be JSON such as {{"orders": {{"0": 23, "1": -1}}}}, not {text}') from None


def read_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """Parse `{"topic": [0, 1]}`. Raises ValueError."""
    try:
        return tuple(
            TopicPartition(topic, _integer(index)) for topic, indexes in json.loads(text).items() for index in indexes
        )
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f'{option} must be JSON such as {{"orders": [0, 1]}}, not {text}') from None


def offsets_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return offsets as the option `startingOffsets` takes them: `{"topic": {"0": 12}}`."""
    return json.dumps(nested_offsets(offsets))


def offsets_from_json(text: str) -> Numbers:
    """The inverse of `offsets_json`."""
    return flat_offsets(json.loads(text))


def nested_offsets(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets as Spark keeps them in a checkpoint: a dictionary of topics, each of partitions."""
    nested: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        nested.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return nested


def flat_offsets(nested: Mapping[str, Mapping[str, int]]) -> Numbers:
    """The inverse of `nested_offsets`."""
    return {
        TopicPartition(topic, int(index)): offset
        for topic, offsets in nested.items()
        for index, offset in offsets.items()
    }


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"


def _time(option: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"{option} must be a time in milliseconds since 1970, not {text}")
    return int(text)


def _integer(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(number)
    return number
