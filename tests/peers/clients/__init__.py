"""One interface to the Python clients of others, so that one test runs with all of them.

A client produces records to one partition and waits for their acknowledgements, and consumes an assigned partition from
a chosen start. Groups are not included: these tests assign partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

Header = tuple[str, bytes | None]


class Outgoing(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    """Milliseconds; None: chosen by the client."""


class Incoming(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Start(NamedTuple):
    """The start of a consumer: an offset, the first record not older than a timestamp, or an end of the log."""

    kind: Literal["beginning", "end", "offset", "timestamp"]
    value: int = 0


BEGINNING = Start("beginning")
END = Start("end")


def nothing() -> None:
    """The default for `once_positioned`: do nothing."""


class Client(Protocol):
    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Outgoing],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send the records in order and return the acknowledged offsets: none with acks=0."""

    def consume(
        self,
        bootstrap: str,
        topic: str,
        *,
        count: int,
        partition: int = 0,
        start: Start = BEGINNING,
        once_positioned: Callable[[], None] = nothing,
    ) -> list[Incoming]:
        """Read exactly `count` records, or fail. `once_positioned` is called when the start has been resolved."""

    def offsets(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        """The first offset, and the offset after the last record."""

    def offset_for_time(self, bootstrap: str, topic: str, timestamp: int, partition: int = 0) -> int | None:
        """The offset of the first record not older than `timestamp`, or None."""
