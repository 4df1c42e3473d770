"""Processes that copy one topic to another exactly once (KIP-447), each with another client.

| module | what |
|---|---|
| `confluent` | librdkafka, with version 1 of the protocol of transactions |
| `bundled` | the bundled client, with version 2 |
| `java` | Kafka's own client, with version 2 |
| `processes` | starts, replaces and kills copiers |
| `__main__` | the process: `python -m tests.crash.copiers bundled 127.0.0.1:9092 TRANSACTIONAL_ID NAME SESSION_MS` |

The copiers are members of one group. Each takes a batch of records, writes them to the same partitions of the other
topic, and commits the next offsets in the same transaction. A copied record is the original and a mark: which attempt
of which process copied it, with how many others, and whether that attempt will be aborted on purpose. After an abort a
copier reads again from the committed offsets. One that is fenced ends with `REPLACE_ME`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

INPUT, OUTPUT, GROUP = "numbers", "copies", "copiers"
BATCH = 40
"""The most records of a transaction."""

TRANSACTION_TIMEOUT_MS = 4000
REPLACE_ME = 3
"""The exit status of a copier that cannot continue: another one may."""

_ABORTED = 0.2
"""How many attempts are aborted on purpose."""


class Job(NamedTuple):
    """The arguments of a copier. `session_ms` is its session timeout in the group."""

    bootstrap: str
    transactional_id: str
    name: str
    session_ms: int

    @property
    def heartbeat_ms(self) -> int:
        return self.session_ms // 5


class Attempt(NamedTuple):
    """One transaction of a copier. `aborts`: it will be aborted after everything was sent."""

    name: str
    aborts: bool

    def mark(self, original: bytes, size: int) -> bytes:
        """The copy of a record in an attempt of `size` records."""
        return b" ".join((original, self.name.encode(), b"%d" % size, b"aborted" if self.aborts else b"committed"))


class Copy(NamedTuple):
    """A copied record: its original and its mark."""

    original: bytes
    attempt: str
    size: int
    aborts: bool

    @classmethod
    def of(cls, value: bytes) -> Copy:
        original, attempt, size, end = value.split(b" ")
        return cls(original, attempt.decode(), int(size), end == b"aborted")


class RecordToCopy(NamedTuple):
    partition: int
    offset: int
    value: bytes


def attempts(job: Job) -> Iterator[Attempt]:
    """Attempts with names of their own, without an end."""
    random = Random(job.name)
    return (Attempt(f"{job.name}.{number}", random.random() < _ABORTED) for number in itertools.count())


def next_offsets(records: list[RecordToCopy]) -> dict[int, int]:
    """The offset after the last record of each partition."""
    return {record.partition: record.offset + 1 for record in records}
