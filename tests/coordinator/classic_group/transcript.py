"""Transcripts of a classic group: the events of a script, and the effects of each.

```
# A comment. The first line says what the script shows.
group delay=3000 size=2                     the group, and what its broker is configured to
> join a session=10000 rebalance=60000      an event; `a` names the client that waits for the reply
a: MEMBER_ID_REQUIRED id=a-1                a reply
record generation=0 members=                a record to append
timer session a-1 10000                     a timer that was set (or `off`)
state PreparingRebalance                    the state, when it has changed
> stored                                    the record of the effects before is in the log (or: `stored ERROR`)
> wait 3000                                 time passes; a timer that expires is `! session a-1`, then its effects
```

| event | arguments |
|---|---|
| join NAME | `id`, `instance`, `session`, `rebalance`, `type`, `protocols` (`range:data,sticky:data`), `version` |
| sync NAME | `id`, `instance`, `generation`, `type`, `protocol`, `assign` (`a-1:A,b-1:B`) |
| heartbeat NAME | `id`, `instance`, `generation` |
| leave NAME | `id` (several with commas), `instance` |
| commit | `id`, `instance`, `generation`, `version`: whether it is allowed, and the timers that it moves |
| stored, wait, load, unload | `load` makes a new group from the last record, as a starting broker does |

Ids that the group gives out are the name with a number. `UPDATE_SCRIPTS=1` writes the effects into the file, to be
reviewed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.runtime.events import Effects, PendingReply, TimerExpired, TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord, decode_record, encode_record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.stored_records.record_types import GROUP_RECORDS

START_MS = 1_000_000
Arguments = dict[str, str]


class ClassicTranscript:
    """One run: `play` takes the lines of a script and yields the whole transcript."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.settings = ClassicSettings(0)
        self.group = self._new_group()
        self.pending_replies: dict[PendingReply, str] = {}
        self.numbers: dict[str, int] = {}
        self.timers: dict[TimerKey, int] = {}
        self.follow_up: Any = None
        self.last_record: CoordinatorRecord | None = None
        self.state = "Empty"

    def play(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            if not line or line.startswith("#"):
                yield line
            elif line.startswith("group"):
                yield line
                self._configure(_arguments(line.split()[1:]))
            elif line.startswith(">"):
                yield line
                word, *rest = line[1:].split()
                yield from getattr(self, f"_{word}")(*rest)

    def _configure(self, arguments: Arguments) -> None:
        size = int(arguments.get("size", 0x7FFFFFFF))
        self.settings = ClassicSettings(int(arguments.get("delay", 0)), size)
        self.group = self._new_group()

    def _new_group(self) -> ClassicGroup:
        return ClassicGroup("g", self.settings, self.now_ms)

    # ---------------------------------------------------------------------------------------------------------- events

    def _join(self, name: str, *rest: str) -> Iterator[str]:
        arguments = _arguments(rest)
        version = int(arguments.get("version", 5))
        protocols = tuple(_pairs(arguments.get("protocols", "range:t")))
        number = self.numbers.get(name, 0) + 1
        session = int(arguments.get("session", 10_000))
        join = Join(
            self._pending_reply(name),
            member_id=arguments.get("id", ""),
            new_member_id=f"{name}-{number}",
            group_instance_id=arguments.get("instance"),
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=session,
            rebalance_timeout_ms=int(arguments.get("rebalance", 60_000)),
            protocol_type=arguments.get("type", "consumer"),
            protocols=tuple((protocol, data.encode()) for protocol, data in protocols),
            reason=arguments.get("reason", "none"),
            requires_known_member_id=version >= 4,
            may_skip_assignment=version >= 9,
        )
        if not join.member_id:
            self.numbers[name] = number
        yield from self._happened(self.group.handle(join, self.now_ms))

    def _sync(self, name: str, *rest: str) -> Iterator[str]:
        arguments = _arguments(rest)
        sync = Sync(
            self._pending_reply(name),
            int(arguments.get("generation", self.group.generation_id)),
            arguments["id"],
            arguments.get("instance"),
            arguments.get("type"),
            arguments.get("protocol"),
            {member_id: data.encode() for member_id, data in _pairs(arguments.get("assign", ""))},
        )
        yield from self._happened(self.group.handle(sync, self.now_ms))

    def _heartbeat(self, name: str, *rest: str) -> Iterator[str]:
        arguments = _arguments(rest)
        generation = int(arguments.get("generation", self.group.generation_id))
        heartbeat = Heartbeat(self._pending_reply(name), generation, arguments["id"], arguments.get("instance"))
        yield from self._happened(self.group.handle(heartbeat, self.now_ms))

    def _leave(self, name: str, *rest: str) -> Iterator[str]:
        arguments = _arguments(rest)
        ids = arguments.get("id", "").split(",")
        leaving = tuple(Leaving(each, arguments.get("instance"), "closing") for each in ids)
        yield from self._happened(self.group.handle(Leave(self._pending_reply(name), leaving), self.now_ms))

    def _commit(self, *rest: str) -> Iterator[str]:
        arguments = _arguments(rest)
        generation = int(arguments.get("generation", self.group.generation_id))
        version = int(arguments.get("version", 9))
        member_id, instance_id = arguments.get("id", ""), arguments.get("instance")
        try:
            committer = Committer(member_id, instance_id, generation, version, is_transactional=False)
            timers = self.group.check_commit(committer, [("t", 0)])
        except KafkaError as error:
            yield f"may not: {error.code.name}"
        else:
            yield "may commit"
            yield from self._timers_set(timers)

    def _stored(self, error: str = "") -> Iterator[str]:
        follow_up, self.follow_up = self.follow_up, None
        code = ErrorCode[error] if error else None
        yield from self._happened(self.group.append_completed(follow_up, code, self.now_ms))

    def _wait(self, milliseconds: str) -> Iterator[str]:
        until = self.now_ms + int(milliseconds)
        while due := [key for key, deadline in self.timers.items() if deadline <= until]:
            key = min(due, key=self.timers.__getitem__)
            self.now_ms = self.timers.pop(key)
            yield f"! {_timer_name(key)} after {self.now_ms - START_MS}"
            yield from self._happened(self.group.handle(TimerExpired(key), self.now_ms))
        self.now_ms = until

    def _load(self) -> Iterator[str]:
        assert self.last_record is not None
        stored = decode_record(GROUP_RECORDS, *encode_record(self.last_record))
        assert stored is not None
        self.timers.clear()
        self.group = self._new_group()
        self.group.replay(stored)
        yield from self._happened(self.group.loaded(self.now_ms))

    def _unload(self) -> Iterator[str]:
        yield from self._happened(self.group.unloaded())

    # --------------------------------------------------------------------------------------------------------- effects

    def _pending_reply(self, name: str) -> PendingReply:
        pending_reply = PendingReply()
        self.pending_replies[pending_reply] = name
        return pending_reply

    def _happened(self, effects: Effects) -> Iterator[str]:
        for pending_reply, reply in effects.replies:
            yield f"{self.pending_replies.pop(pending_reply)}: {_reply_text(reply)}"
        for record in effects.records:
            self.last_record = record
            yield f"record {_record_text(record)}"
        if effects.follow_up is not None:
            self.follow_up = effects.follow_up
        yield from self._timers_set(effects.timers)
        if self.group.state != self.state:
            self.state = self.group.state
            yield f"state {self.state}"

    def _timers_set(self, timers: dict[TimerKey, int | None]) -> Iterator[str]:
        for key, delay_ms in timers.items():
            if delay_ms is not None:
                self.timers[key] = self.now_ms + delay_ms
                yield f"timer {_timer_name(key)} {delay_ms}"
            elif self.timers.pop(key, None) is not None:
                yield f"timer {_timer_name(key)} off"


def _arguments(words: Any) -> Arguments:
    return dict(word.split("=", 1) for word in words)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for item in text.split(",") if text else ():
        name, _, data = item.partition(":")
        yield name, data


def _timer_name(key: TimerKey) -> str:
    return " ".join(part for part in key if part)


def _reply_text(reply: Any) -> str:
    if isinstance(reply, LeaveGroupResponse):
        return ", ".join(f"{row.member_id or row.group_instance_id} {_code(row)}" for row in reply.members)
    words = [_code(reply)]
    if isinstance(reply, JoinGroupResponse):
        if reply.member_id:
            words.append(f"id={reply.member_id}")
        if reply.error_code == ErrorCode.NONE:
            words += [f"generation={reply.generation_id}", f"protocol={reply.protocol_name}", f"leader={reply.leader}"]
        if reply.members:
            words.append(
                "members=" + ",".join(f"{row.member_id}:{bytes(row.metadata).decode()}" for row in reply.members)
            )
        if reply.skip_assignment:
            words.append("skip")
    elif isinstance(reply, SyncGroupResponse) and reply.error_code == ErrorCode.NONE:
        words.append(f"assignment={bytes(reply.assignment).decode()}")
    else:
        assert isinstance(reply, HeartbeatResponse | SyncGroupResponse)
    return " ".join(words)


def _code(row: Any) -> str:
    return ErrorCode(row.error_code).name


def _record_text(record: CoordinatorRecord) -> str:
    value: Any = record.value
    members = ",".join(f"{row.member_id}:{bytes(row.assignment).decode()}" for row in value.members)
    return f"generation={value.generation} protocol={value.protocol} leader={value.leader} members={members}"
