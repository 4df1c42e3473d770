"""The history of a run: transactions with their outcomes, and the records that readers read.

Every record has a value of its own, so that it can be found again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    """The outcome of a transaction, as far as its producer learned it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """No commit was requested, or an abort succeeded."""
    UNKNOWN = "unknown"
    """A commit was requested, and neither succeeded nor was followed by a successful abort."""


class Write(NamedTuple):
    """A record that was sent; `offset` is the acknowledged one, None without an acknowledgement."""

    partition: int
    value: str
    offset: int | None = None


class Transaction(NamedTuple):
    name: str
    outcome: Outcome
    writes: tuple[Write, ...]


class Seen(NamedTuple):
    """A record that a reader read."""

    partition: int
    offset: int
    value: str


class CommittedOffset(NamedTuple):
    """A commit of a group's offset in a transaction with this outcome; without an outcome, a read of it."""

    offset: int
    outcome: Outcome | None = None


@dataclass
class History:
    """`reads` has the records of each reader in its order; `final` has the whole log, read after the last fault. It is
    None if a client could not go on: then it is not known which transactions have ended.

    `committed_offsets` has the commits and reads of each group, whose one client has one request at a time; a read
    after a commit of unknown outcome follows the fencing of its producer. `failures` says what clients could not do
    although nobody fenced them, `stuck` which transactions were decided and did not end.
    """

    transactions: list[Transaction] = field(default_factory=list)
    reads: dict[str, list[Seen]] = field(default_factory=dict)
    final: list[Seen] | None = None
    committed_offsets: dict[str, list[CommittedOffset]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
