"""What a type of group offers to the coordinator, and what it may rely on: the seam between state machines and broker.

```
            event, now                        effects
request ─────────────────► state machine ────────────────┬─ records ─► log ─► replay(record), stored(follow_up)
timer   ─────────────────► (pure: no I/O,                ├─ timers ──► later a TimerExpired event
                            no clock, no asyncio)        └─ replies ─► out when the records are in the log
```

A group is one object. `odradek.broker.coordinator.runtime.shard` calls it; nothing else does. What it may rely on:

- One event at a time: while the records of an event are on their way to the log, the group's later events wait.
- `replay` is called with every record of an event when the log has it, unless the effects say that the state has them
  in it already (`is_applied`). So a machine that changes its state in `replay` alone needs no way back.
- If the records cannot be written, every reply of these effects becomes the error, nothing is replayed, nobody takes
  the group's place, and timers are set only of effects that are applied. The timer that the effects come of expires
  again soon. A machine that gave a `follow_up` hears of either end by `stored`, unless it was unloaded before.
- Timers are set when the replies go out. A timer is known by its key within the group; setting one again moves it.
- `handle` may raise KafkaError instead of answering, if it has not changed anything: it becomes the reply.

Times are wall-clock milliseconds, delays milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import msgspec

from odradek.broker.coordinator.records import CoordinatorRecord
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Structure

if TYPE_CHECKING:
    import asyncio

CLASSIC = "classic"
CONSUMER = "consumer"

TimerKey = tuple[str, str]
"""What the timer is for, and of which member ("" for the group)."""

Reply = Structure | KafkaError
"""The response, or the part of it that is this group's."""


class PendingReply:
    """Whom a reply is for. A group keeps it until it answers, and does nothing else with it."""

    __slots__ = ("_future", "_reply")

    def __init__(self) -> None:
        self._reply: Reply | None = None
        self._future: asyncio.Future[Structure] | None = None

    def complete(self, reply: Reply) -> None:
        """Hand in the reply. The coordinator does, when what it says is in the log."""
        if self._future is None:
            self._reply = reply
        elif not self._future.done():  # the client may have gone meanwhile
            if isinstance(reply, KafkaError):
                self._future.set_exception(reply)
            else:
                self._future.set_result(reply)

    def result(self, create_future: Callable[[], asyncio.Future[Structure]]) -> Structure | asyncio.Future[Structure]:
        """The reply, or the future of it. Raises KafkaError if that is the reply."""
        if self._reply is None:
            self._future = create_future()
            return self._future
        if isinstance(self._reply, KafkaError):
            raise self._reply
        return self._reply


class Event(msgspec.Struct, frozen=True):
    """Something that happens to a group. Its answer goes to `pending_reply`.

    `creates` is the type of group that is made for the event where there is none, or an empty one of another type.
    """

    creates: ClassVar[str] = CLASSIC

    pending_reply: PendingReply


class TimerExpired(msgspec.Struct, frozen=True):
    """The event of a timer that was set by earlier effects and not moved since."""

    key: TimerKey


class MetadataChanged(msgspec.Struct, frozen=True):
    """Topics were created, deleted, or have other partitions; for groups with `follows_metadata`."""

    topics: frozenset[str]
    has_new_topics: bool


class WorkFailed(msgspec.Struct, frozen=True):
    """The event instead of the one that `Effects.work` was to return."""


class LogLine(msgspec.Struct, frozen=True):
    """A line for the broker's log."""

    event: str
    fields: dict[str, Any] = {}


class Effects(msgspec.Struct):
    """What comes of an event.

    `timers`: set (delay in ms) or cancelled (None). `follow_up`: handed to `stored` when the records are in the log, or
    could not be written. `become`: the group that stands in this one's place from now on (a migration); its records
    come after this one's. `is_applied`: the state has the records in it already, so they are not replayed. `work`: what
    takes long; it runs in a thread, and what it returns is an event for `handle`, or else WorkFailed is. `expired`: the
    timer that the effects come of, which the shard fills in.
    """

    replies: list[tuple[PendingReply, Reply]] = []
    records: list[CoordinatorRecord] = []
    timers: dict[TimerKey, int | None] = {}
    log_lines: list[LogLine] = []
    follow_up: Any = None
    become: Group | None = None
    is_applied: bool = False
    work: Callable[[], Any] | None = None
    expired: TimerKey | None = None


class Committer(NamedTuple):
    """Who commits offsets: a member, in a generation (a member epoch), or with -1 and no ids somebody outside."""

    member_id: str
    group_instance_id: str | None
    generation_id: int
    api_version: int
    is_transactional: bool


class Group(Protocol):
    """One group of any type. All members are called on the event loop, apart from `replay` while its partition loads.

    `group_type` is what ListGroups says from version 5 on, `protocol_type` what it always said ("" if unknown).
    """

    group_id: str
    group_type: ClassVar[str]
    follows_metadata: ClassVar[bool]

    @property
    def protocol_type(self) -> str: ...

    @property
    def state(self) -> str:
        """The state's name in ListGroups and DescribeGroups, which may depend on the time of the last event."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, so that another type of group may take its place."""
        ...

    @property
    def members_count(self) -> int: ...

    def handle(self, event: Any, now_ms: int) -> Effects:
        """Take an `Event`, a `TimerExpired`, or what comes of `Effects.work`.

        That work may have been asked for by the group whose place this one took. Raises KafkaError, having changed
        nothing.
        """
        ...

    def stored(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        """The records of effects with a `follow_up` are in the log, or `error` is why not, as clients are told it."""
        ...

    def replay(self, record: CoordinatorRecord) -> None:
        """Take a record of this group's into the state: from the log at the start, or one that was just written."""
        ...

    def loaded(self, now_ms: int) -> Effects:
        """The log was replayed: which timers are to run."""
        ...

    def unloaded(self) -> Effects:
        """The group goes to another broker, or this one stops: answer those who wait with NOT_COORDINATOR."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that take the group out of the log; its offsets are not among them."""
        ...

    def metadata_changed(self, changed_topics: Collection[str], has_new_topics: bool, now_ms: int) -> Effects:
        """Topics were created, deleted or changed; called if `follows_metadata`."""
        ...

    def check_commit(self, committer: Committer, partitions: Collection[tuple[str, int]]) -> dict[TimerKey, int | None]:
        """Raise KafkaError unless this committer may commit for these partitions; the timers that a commit moves."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError unless that member may read the group's offsets."""
        ...

    def check_offset_delete(self) -> None:
        """Raise KafkaError unless offsets of topics that nobody subscribes to may be deleted."""
        ...

    def check_delete(self) -> None:
        """Raise KafkaError unless the group may be deleted."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads that topic, so that its offsets are kept."""
        ...

    def retention_start(self, commit_timestamp: int) -> int | None:
        """From when on the retention of an offset that was committed then counts; None: it is kept."""
        ...
