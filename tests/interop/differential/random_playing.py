"""Play a random sequence of acts against two servers, one after the other, and compare every answer.

```
Act(kind, slot, fields) ─► build(side, act) ─┬─► reference: a connection of its own if others wait ─┐
                                             └─► subject:   the same                                ─┴─► compare
```

An act is plain data, so that a sequence can be printed and made shorter. It names members by their slot: each `Side`
stores the ids, epochs and assignments that its server answered to the slot, and `build` makes the request from them.
Coordinators answer in the order of their events. So when a request that follows is answered, an earlier one of the same
group that has no answer is parked. Answers of parked requests are taken in pairs, so that both sides always know the
same; if only one side has answered, the other one has `LATE` seconds.

A sequence ends where Kafka chooses by the order of a hash table (the leader, if the former one is gone), or fails with
UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.protocol.schema import Message
from tests.interop.differential.playing import PAUSE, Difference, Seen, compare, plain
from tests.wire import Wire

LATE = 5.0
"""Seconds until the answer of one server is missing that the other one has sent."""
SOON = 0.02
"""Seconds in which an answer arrives that is not delayed by the coordinator."""
_CLOSED = "the connection was closed"
_SHRINKING = 80
"""How many shorter sequences are tried after a difference."""


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KAFKAS_UUID = re.compile(r"[A-Za-z0-9_-]{22}")


class Act(msgspec.Struct, frozen=True):
    """One step: `fields` depend on the kind. `number` stays the same when a sequence is made shorter."""

    number: int
    kind: str
    slot: int = 0
    fields: dict[str, Any] = {}

    def __str__(self) -> str:
        fields = " ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.number:3} {self.kind} {self.slot} {fields}"


class Known(msgspec.Struct):
    """A member as its client knows it."""

    member_id: str = ""
    epoch: int = -1
    protocol: str | None = None
    members: list[str] = []  # of the leader: all of them
    assigned: dict[bytes, list[int]] = {}
    consumer_instance: str | None = None  # the instance id of a member of the consumer protocol


class Side:
    """One server, its connections, and the state of the clients there. `prefix` begins all names of the sequence."""

    def __init__(self, port: int, log_dir: str, prefix: str) -> None:
        self.port = port
        self.prefix = prefix
        self.seen = Seen(log_dir)
        self.known: dict[int, Known] = {}
        self.has_random_ids = False
        self._idle: list[Wire] = []

    def note(self, answer: Any) -> None:
        """Store the ids in an answer."""
        self.seen.note(answer)
        if isinstance(answer, JoinGroupResponse) and _KAFKAS_UUID.fullmatch(answer.member_id):
            # Of a classic member in a consumer group: the order of members is that of their ids.
            self.has_random_ids = True
            if answer.member_id not in self.seen.member_ids:
                self.seen.member_ids.append(answer.member_id)

    def slot(self, number: int) -> Known:
        return self.known.setdefault(number, Known())

    def topic_id(self, name: str) -> bytes:
        return self.seen.topic_ids.get(f"{self.prefix}-{name}", bytes(range(16)))

    async def connection(self, client_id: str) -> Wire:
        wire = self._idle.pop() if self._idle else await Wire("127.0.0.1", self.port).__aenter__()
        wire.client_id = client_id
        return wire

    def give_back(self, wire: Wire) -> None:
        self._idle.append(wire)

    async def ask(self, request: Message, version: int) -> Any:
        wire = await self.connection("asking")
        answer = await wire.ask(request, version)
        self.give_back(wire)
        return answer

    async def close(self) -> None:
        for wire in self._idle:
            await wire.__aexit__(None, None, None)
        self._idle.clear()


Request = tuple[Message, int]


class Kind(msgspec.Struct, frozen=True):
    """A kind of act. `build` returns the request and its version.

    `learn` stores what the answer says. `shown` is the part of an answer that is compared. `is_only_here` returns
    whether the reference may never answer what the subject answers like this. `may_differ` returns whether a documented
    difference may show. `settled` returns a function that shows whether the effects of an act are complete, if they
    come only after the answer.
    """

    build: Callable[[Side, Act], Request]
    learn: Callable[[Side, Act, Any], None] = lambda side, act, answer: None
    shown: Callable[[Side, Any], Any] = lambda side, answer: answer
    is_only_here: Callable[[Any], bool] = lambda answer: False
    may_differ: Callable[[Side, Act], bool] = lambda side, act: False
    settled: Callable[[Act], Callable[[Side], Awaitable[Any]] | None] = lambda act: None


class Differs(Exception):  # noqa: N818 - a finding, not an error of the test
    """The answers to one act differ."""

    def __init__(self, act: Act, request: Message | None, differences: list[Difference]) -> None:
        super().__init__(f"{act}\n{request}\n" + "\n".join(map(str, differences)))
        self.act = act


class _Undecided(Exception):  # noqa: N818
    """The reference has chosen something by chance."""


class _Parked(msgspec.Struct):
    act: Act
    requests: list[Message]
    wires: list[Wire]
    answers: list[asyncio.Task[Any]]


class Play:
    """One sequence under way. It may be continued after a restart of the servers."""

    def __init__(self, kinds: dict[str, Kind], sides: Sequence[Side]) -> None:
        self._kinds = kinds
        self.sides = sides
        self._parked: list[_Parked] = []
        self._is_decided = True
        self.answered = 0

    async def play(self, acts: Iterable[Act]) -> None:
        """Raises Differs. Returns at an act whose answer is a matter of chance, and then plays nothing more."""
        try:
            for act in acts:
                if not self._is_decided:
                    return
                await self._play_one(act)
        except _Undecided:
            self._is_decided = False

    async def disconnect(self) -> None:
        """Close all connections, and forget the requests without an answer."""
        for parked in list(self._parked):
            await self._abandon(parked)
        for side in self.sides:
            await side.close()

    async def _abandon(self, parked: _Parked) -> None:
        """Close the connections of a request without an answer."""
        self._parked.remove(parked)
        for answer in parked.answers:
            answer.cancel()
        await asyncio.gather(*parked.answers, return_exceptions=True)
        for wire in parked.wires:
            await wire.__aexit__(None, None, None)

    async def _play_one(self, act: Act) -> None:
        kind = self._kinds[act.kind]
        sent = _Parked(act, [], [], [])
        for side in self.sides:
            request, version = kind.build(side, act)
            wire = await side.connection(f"act-{act.number:03}")
            await wire.send(request, version)
            sent.requests.append(request)
            sent.wires.append(wire)
            sent.answers.append(asyncio.create_task(_receive(wire, request, version)))
        self._parked.append(sent)
        await asyncio.wait(sent.answers, timeout=SOON)
        if not all(answer.done() for answer in sent.answers):
            await self._pass_events()
        await self._collect()
        settled = kind.settled(act)
        if settled is not None:
            await self._wait_until_settled(settled, act)

    async def _pass_events(self) -> None:
        """Return when the coordinators have handled all requests so far."""
        for side in self.sides:
            await side.ask(HeartbeatRequest(f"{side.prefix}-g", 0, "nobody"), 3)
        await asyncio.sleep(SOON)

    async def _collect(self) -> None:
        """Compare the answers that both sides have."""
        pairs = []
        for parked in list(self._parked):
            done = [answer.done() for answer in parked.answers]
            if not any(done):
                continue
            if not all(done):
                excused = done[1] and self._kinds[parked.act.kind].is_only_here(parked.answers[1].result())
                await asyncio.wait(parked.answers, timeout=SOON if excused else LATE)
                if excused and not parked.answers[0].done():
                    await self._abandon(parked)
                    continue
            answers = [answer.result() if answer.done() else None for answer in parked.answers]
            if None in answers or _CLOSED in answers:
                raise Differs(parked.act, parked.requests[0], [Difference("no answer", *answers)])
            self._parked.remove(parked)
            pairs.append((parked, answers))
            for side, wire, answer in zip(self.sides, parked.wires, answers, strict=True):
                side.give_back(wire)
                side.note(answer)
        for parked, answers in pairs:
            self._compare(parked, answers)

    def _compare(self, parked: _Parked, answers: list[Any]) -> None:
        kind = self._kinds[parked.act.kind]
        may_differ = any(kind.may_differ(side, parked.act) for side in self.sides)
        shown = []
        for side, answer in zip(self.sides, answers, strict=True):
            kind.learn(side, parked.act, answer)
            shown.append(_named(plain(kind.shown(side, answer), side.seen), side))
        if isinstance(answers[0], JoinGroupResponse):
            _check_leaders(shown)
        found = [Difference(*each) for each in compare(*shown)]
        codes = [getattr(answer, "error_code", ErrorCode.NONE) for answer in answers]
        if codes[0] == ErrorCode.UNKNOWN_SERVER_ERROR != codes[1]:
            raise _Undecided
        if may_differ and not getattr(answers[0], "error_code", 0):
            raise _Undecided
        if found and any(side.has_random_ids for side in self.sides) and all(map(_is_of_assignment, found)):
            raise _Undecided
        if found:
            raise Differs(parked.act, parked.requests[0], found)
        self.answered += 1

    async def _wait_until_settled(self, settled: Callable[[Side], Awaitable[Any]], act: Act) -> None:
        """Wait until both servers show the same state, twice."""
        found: list[Difference] = []
        equal = 0
        for _ in range(round(LATE / PAUSE)):
            await asyncio.sleep(PAUSE)
            shown = [_named(plain(await settled(side), side.seen), side) for side in self.sides]
            found = [Difference(*each) for each in compare(*shown)]
            equal = 0 if found else equal + 1
            if equal == 2:
                return
        raise Differs(act, None, found)


async def _receive(wire: Wire, request: Message, version: int) -> Any:
    try:
        return await wire.receive(request, version)
    except asyncio.IncompleteReadError:
        return _CLOSED


def _is_of_assignment(difference: Difference) -> bool:
    return "assignment" in difference.path or "partitions" in difference.path


def _check_leaders(shown: list[Any]) -> None:
    leaders = [answer["leader"] for answer in shown]
    if leaders[0] != leaders[1] and all(leaders):
        raise _Undecided


def _named(value: Any, side: Side) -> Any:
    """The value with names of members in the texts instead of their ids."""
    if isinstance(value, dict):
        return {name: _named(field, side) for name, field in value.items()}
    if isinstance(value, list):
        return [_named(member, side) for member in value]
    if isinstance(value, str):
        for number, member_id in enumerate(side.seen.member_ids):
            value = value.replace(member_id, f"id of member {number}")
        return _UUID.sub("id", value)
    return value


async def coordinated(sides: Iterable[Side]) -> None:
    """Return when the coordinators of both servers have loaded their partition."""
    for side in sides:
        group = f"{side.prefix}-g"
        wanted = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)])
        while (await side.ask(FindCoordinatorRequest(key=group), 3)).error_code:
            pass
        while (await side.ask(wanted, 8)).groups[0].error_code:
            pass


async def shrink(
    acts: Sequence[Act], differs: Callable[[Sequence[Act]], Any], fixed: Callable[[Act], bool]
) -> list[Act]:
    """Return a shorter sequence that still differs, as `differs` finds. Acts that are `fixed` stay."""
    kept = list(acts)
    length = max(len(kept) // 2, 1)
    attempts = _SHRINKING
    while attempts and length:
        start = 0
        while start < len(kept) and attempts:
            part = kept[start : start + length]
            shorter = [each for each in kept if each not in part or fixed(each)]
            attempts -= 1
            if len(shorter) < len(kept) and await differs(shorter):
                kept = shorter
            else:
                start += length
        length //= 2
    return kept
