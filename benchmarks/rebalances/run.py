"""One run: a broker, a steady producer, a group of one client, and the steps of a schedule."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rebalances.columns import Columns, compute, count_reads
from benchmarks.rebalances.members import CLIENTS, Process, Variant
from benchmarks.rebalances.schedule import SESSION_SECONDS, Step, first_members
from odradek.client import Admin, NewTopic, Producer, UnknownTopicError
from tests.peers import apache, odradek
from tests.peers.server import Server

BROKERS: dict[str, Callable[..., Server]] = {"odradek": odradek.prepare, "apache": apache.prepare}
PATTERN = "chaos-.*"
GROUP = "chaos"
PARTITIONS = 8
ADDED_PARTITIONS = 3
RECORD_SECONDS = 0.1
"""Each partition gets a record in such an interval."""

_SETTLE_SECONDS = 8.0
"""Between the last step and the end of the evaluation: longer than a session, in which a late member is found."""
_PATIENCE_SECONDS = 120.0
_SESSION_MS, _HEARTBEAT_MS = str(int(SESSION_SECONDS * 1000)), "1000"
_SETTINGS = {
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": "1000",
    "metadata.max.age.ms": "2000",
    "session.timeout.ms": _SESSION_MS,
    "heartbeat.interval.ms": _HEARTBEAT_MS,
}
_PROPERTIES = {
    "group.consumer.min.session.timeout.ms": _SESSION_MS,
    "group.consumer.session.timeout.ms": _SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": _HEARTBEAT_MS,
    "group.consumer.heartbeat.interval.ms": _HEARTBEAT_MS,
}


async def run(
    client: str,
    variant: Variant,
    steps: Sequence[Step],
    directory: Path,
    *,
    broker: str = "odradek",
    commits: str = "auto",
    settle_seconds: float = _SETTLE_SECONDS,
) -> Columns:
    """Carry out the steps with a new broker; return the columns. The members' events stay in `directory`."""
    command = await asyncio.to_thread(CLIENTS[client])
    server = await asyncio.to_thread(BROKERS[broker], directory / "broker", _PROPERTIES)  # makes the directory
    await asyncio.to_thread(server.start)
    settings = [f"{name}={value}" for name, value in _SETTINGS.items()]
    arguments = [server.bootstrap, GROUP, PATTERN, variant.protocol, variant.assignor, commits, *settings]
    group = _Group(directory, [*command, *arguments])
    try:
        async with Admin(server.bootstrap) as admin, _producer(server.bootstrap) as producer:
            return await _Run(group, admin, producer).carry_out(steps, settle_seconds)
    finally:
        group.end()
        server.kill()


def _producer(bootstrap: str) -> Producer:
    return Producer(bootstrap, linger_ms=0, metadata_max_age_ms=500)


class _Group:
    """The members of the group, and the events of the schedule."""

    def __init__(self, directory: Path, command: list[str]) -> None:
        self._directory = directory
        self._command = command
        self.members: dict[str, Process] = {}
        self.schedule_events: list[dict[str, Any]] = []

    def prepare(self, names: Iterable[str]) -> None:
        """Start the processes of members, which join later: the start of a process is none of the client's work."""
        for name in names:
            self.members[name] = Process(name, self._directory, self._command)

    def are_ready(self) -> bool:
        ready = [event["member"] for event in self.events() if event["event"] == "ready"]
        return len(ready) == len(self.members)

    def start(self, name: str) -> None:
        self.note("started", name)
        self.members[name].join()

    def note(self, event: str, member: str = "", **fields: Any) -> None:
        self.schedule_events.append({"at": time.time(), "event": event, "member": member, **fields})

    def events(self) -> list[dict[str, Any]]:
        return [*self.schedule_events, *(event for member in self.members.values() for event in member.events())]

    def save(self) -> None:
        """Store the events of the schedule with those of the members."""
        lines = [json.dumps(event) + "\n" for event in self.schedule_events]
        (self._directory / "schedule.jsonl").write_text("".join(lines))

    def close_all(self) -> None:
        for member in self.members.values():
            member.close()

    def have_ended(self) -> bool:
        return all(member.has_ended() for member in self.members.values())

    def note_crashes(self) -> None:
        for name, member in self.members.items():
            if error := member.crash():
                self.note("crashed", name, error=error)

    def end(self) -> None:
        for member in self.members.values():
            member.end()


class _Run:
    def __init__(self, group: _Group, admin: Admin, producer: Producer) -> None:
        self._group = group
        self._admin = admin
        self._producer = producer
        self._written: defaultdict[str, int] = defaultdict(int)
        self._topics: dict[str, int] = {}
        self._is_over = False

    async def carry_out(self, steps: Sequence[Step], settle_seconds: float) -> Columns:
        await self._create("chaos-first", PARTITIONS)
        self._group.prepare([*first_members(), *(step.member for step in steps if step.action == "start")])
        await self._require(self._group.are_ready, "the members are not ready")
        for name in first_members():
            self._group.start(name)
        producing = asyncio.create_task(self._produce())
        try:
            await self._require(self._each_member_has_begun, "the first members do not own all partitions")
            self._group.note("begun")
            await self._take_steps(steps)
            await asyncio.sleep(settle_seconds)
            self._group.note("over")
        finally:
            self._is_over = True
            await producing
        await self._until(self._is_read)
        self._group.note_crashes()
        self._group.close_all()
        await self._until(self._group.have_ended)
        self._group.save()
        return compute(self._group.events(), self._written)

    async def _take_steps(self, steps: Iterable[Step]) -> None:
        begun = asyncio.get_running_loop().time()
        for step in steps:
            await asyncio.sleep(begun + step.at - asyncio.get_running_loop().time())
            await self._take(step)

    async def _take(self, step: Step) -> None:
        group = self._group
        match step.action:
            case "start":
                group.start(step.member)
            case "close":
                group.members[step.member].close()
            case "slow":
                group.members[step.member].order(f"slow {step.seconds}")
            case "kill":
                group.note("killed", step.member)
                group.members[step.member].kill()
            case "pause":
                group.members[step.member].pause()
                group.note("paused", step.member)
            case "resume":
                group.note("resumed", step.member)
                group.members[step.member].resume()
            case "add_partitions":
                await self._add_partitions("chaos-first", ADDED_PARTITIONS)
            case "create_topic":
                await self._create("chaos-second", ADDED_PARTITIONS)

    async def _create(self, topic: str, count: int) -> None:
        (await self._admin.create_topics([NewTopic(topic, count)])).values_or_raise()
        self._note_partitions(topic, range(count))

    async def _add_partitions(self, topic: str, count: int) -> None:
        before = self._topics[topic]
        (await self._admin.create_partitions({topic: before + count})).values_or_raise()
        self._note_partitions(topic, range(before, before + count))

    def _note_partitions(self, topic: str, numbers: range) -> None:
        self._group.note("created", partitions=[f"{topic}-{number}" for number in numbers])
        self._topics[topic] = numbers.stop

    async def _produce(self) -> None:
        """Write the next number to each partition, at intervals."""
        sent: list[Awaitable[Any]] = []
        while not self._is_over:
            for topic, count in list(self._topics.items()):
                for number in range(count):
                    name = f"{topic}-{number}"
                    value = b"%d" % self._written[name]
                    with contextlib.suppress(UnknownTopicError):  # the producer has older metadata
                        sent.append(await self._producer.send(topic, value, partition=number))
                        self._written[name] += 1
            await asyncio.sleep(RECORD_SECONDS)
        await asyncio.gather(*sent)

    def _each_member_has_begun(self) -> bool:
        events = self._group.events()
        owned = {partition for event in events if event["event"] == "assigned" for partition in event["partitions"]}
        begun = {event["member"] for event in events if event["event"] == "assigned" and event["partitions"]}
        return len(owned) == PARTITIONS and len(begun) == len(first_members())

    def _is_read(self) -> bool:
        reads = count_reads(self._group.events())
        return len(reads) == sum(self._written.values())

    async def _require(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Wait for what the schedule begins with: on a machine that is too busy for that, a run says nothing."""
        if not await self._until(condition):
            raise RuntimeError(
                f"after {_PATIENCE_SECONDS:.0f} s {otherwise}: the machine is too busy, or a client fails"
            )

    async def _until(self, condition: Callable[[], bool]) -> bool:
        """Wait, but not for ever; return whether the condition holds. The files of events are read again and again."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while not condition():
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.2)
        return True
