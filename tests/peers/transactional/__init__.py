"""One interface to the transactions of other clients, so that one test runs with all of them.

| module | what |
|---|---|
| `java` | Kafka's own client, in a shared Java machine |
| `confluent` | confluent-kafka: librdkafka |
| `aiokafka`, `kafka_python` | the two clients in Python |
| `raw` | single requests, with a version, id and epoch that the test chooses |
| `decided` | the transactions that are decided and have not ended |

A client makes transactional producers and members of a group. Every call waits for its end. All errors are
`TransactionError` with the client's own as its cause, and `FencedError` if the producer must not be used any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

TIMEOUT = 60.0
"""Seconds that a call may take."""


class TransactionError(Exception):
    """A step of a transaction failed."""


class FencedError(TransactionError):
    """Another producer with the same transactional id, or the coordinator, replaced this one."""


class Read(NamedTuple):
    """A record that a member of a group has read."""

    offset: int
    value: bytes


class Member(Protocol):
    """A consumer in a group that never commits by itself."""

    def read(self, count: int) -> list[Read]:
        """The next records of its only partition, exactly so many."""

    def close(self) -> None: ...


class TransactionalProducer(Protocol):
    """A producer that has its id and epoch; making it fences older ones of the same transactional id."""

    def begin(self) -> None: ...

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Send records and wait for their acknowledgements."""

    def send_offsets(self, member: Member, offsets: Mapping[tuple[str, int], int]) -> None:
        """Add the next offsets of a member's group to the transaction."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class TransactionalClient(Protocol):
    name: str

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer: ...

    def member(self, bootstrap: str, group: str, topic: str) -> Member:
        """A member that reads a topic of one partition from its start, committed records only."""

    def committed(self, bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
        """All records that a consumer with isolation.level=read_committed reads up to the last stable offset."""
