"""The events of a trace.

| event | recorded when |
|---|---|
| `RequestReceived` | a request was decoded, before its handler runs |
| `RequestAnswered` | its answer is known, or that it gets none |
| `GroupTransition`, `TransactionTransition` | the records of a coordinator's event are in the log |
| `FileOperation` | a file or directory of a log directory was changed |

A brief trace has only `Exchange`s. `cause` is the number of the request in which something happened; None for the
broker's periodic work. Times are milliseconds since 1970 on the broker's clock.
"""

from __future__ import annotations

from typing import Any

import msgspec

from odradek.broker.request.context import Address

Fields = dict[str, Any]
"""The fields of a message by name, cut and without secrets: numbers, booleans, text, None, lists, other `Fields`."""


class Exchange(msgspec.Struct, eq=False):
    """A request and its answer.

    `seconds` is None until there is an answer, or none will follow. `subject` is the group or transactional id.
    `errors` are the names of the error codes in the answer, without NONE. `outcome` is a sentence about an error, or
    the reason why there is no answer.
    """

    number: int
    time_ms: int
    peer: Address
    client_id: str | None
    api: str
    version: int
    correlation_id: int
    topics: tuple[str, ...] = ()
    subject: str = ""
    errors: tuple[str, ...] = ()
    seconds: float | None = None
    outcome: str = ""

    def __str__(self) -> str:
        from odradek.broker.explain.text import exchange_line

        return exchange_line(self)


class RequestReceived(msgspec.Struct, frozen=True, eq=False):
    """A request, with its fields."""

    exchange: Exchange
    fields: Fields
    size: int

    @property
    def time_ms(self) -> int:
        return self.exchange.time_ms

    @property
    def cause(self) -> int:
        return self.exchange.number


class RequestAnswered(msgspec.Struct, frozen=True, eq=False):
    """The answer to a request; `fields` is None if the handler raised an error or the client gets no answer."""

    exchange: Exchange
    time_ms: int
    fields: Fields | None
    size: int

    @property
    def cause(self) -> int:
        return self.exchange.number


class GroupTransition(msgspec.Struct, frozen=True, eq=False):
    """A group changed its state, generation or members.

    `states` are the states that it went through, the one before first; a new group has none before. `generation` is
    the group epoch for a group of the consumer protocol. `members` counts them. `reason` may be empty. A deleted group
    ends in the state "none".
    """

    time_ms: int
    cause: int | None
    group_id: str
    group_type: str
    states: tuple[str, ...]
    generation: int
    members: int
    reason: str
    size: int = 500


class TransactionTransition(msgspec.Struct, frozen=True, eq=False):
    """A transactional id changed its state, producer or partitions.

    `states` has the one before, if there was one, and the new one; "none" if the id was forgotten. `partitions` are
    those of the transaction, cut.
    """

    time_ms: int
    cause: int | None
    transactional_id: str
    states: tuple[str, ...]
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]
    size: int = 1000


class FileOperation(msgspec.Struct, frozen=True, eq=False):
    """A change of a file or directory; `path` is relative to the log directory.

    | operation | position | length | target |
    |---|---|---|---|
    | write | of the first byte | bytes | |
    | truncate | | the new size | |
    | rename | | | the new path |
    | create, remove, make directory, remove directory, fsync | | | |
    | more: operations that are not events of their own (`file_runs`) | | their number | |

    `error` is the reason if it failed.
    """

    time_ms: int
    cause: int | None
    operation: str
    path: str
    position: int | None = None
    length: int | None = None
    target: str = ""
    error: str = ""
    size: int = 500


TraceEvent = RequestReceived | RequestAnswered | GroupTransition | TransactionTransition | FileOperation | Exchange
