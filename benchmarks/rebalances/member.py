"""A member of a group with the bundled consumer, as a process: prints its events, and obeys commands on stdin.

`python -m benchmarks.rebalances.member BOOTSTRAP GROUP PATTERN PROTOCOL ASSIGNOR COMMITS name=value …`, where the
protocol is classic or consumer, commits are auto or poll (after each poll), and settings have dots, as in Java.
`Member.java` is the same with Java's consumer.

| command | |
|---|---|
| `join` | subscribe; before that the member is connected and prints `ready`, so that its start takes no time here |
| `slow SECONDS` | the next call of the listener that has partitions takes that long |
| `close`, or the end of the input | close the consumer and end |
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from odradek.client import ClientError, Consumer, RebalanceListener, TopicPartition

POLL_MS = 200
_OF_CLASSIC_GROUPS = ("session.timeout.ms", "heartbeat.interval.ms")


class Member(RebalanceListener):
    """The listener, and the state that commands change."""

    def __init__(self) -> None:
        self.is_closing = False
        self.joining = asyncio.Event()
        self._slow_seconds = 0.0
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._obey, daemon=True).start()

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        report("assigned", partitions=names(partitions))
        await self._be_slow(partitions)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        report("revoking", partitions=names(partitions))
        await self._be_slow(partitions)
        report("revoked", partitions=names(partitions))

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        report("lost", partitions=names(partitions))

    async def _be_slow(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions:
            seconds, self._slow_seconds = self._slow_seconds, 0.0
            await asyncio.sleep(seconds)

    def _obey(self) -> None:
        for line in sys.stdin:
            command, *arguments = line.split()
            if command == "close":
                break
            if command == "slow":
                self._slow_seconds = float(arguments[0])
            else:
                self._loop.call_soon_threadsafe(self.joining.set)
        self.is_closing = True
        self._loop.call_soon_threadsafe(self.joining.set)


async def main(
    bootstrap: str, group: str, pattern: str, protocol: str, assignor: str, commits: str, *written: str
) -> None:
    settings: dict[str, Any] = dict(setting.split("=", 1) for setting in written)
    if protocol == "consumer":
        settings = {name: value for name, value in settings.items() if name not in _OF_CLASSIC_GROUPS}
    else:
        settings["partition.assignment.strategy"] = assignor
    keywords: dict[str, Any] = {
        name.replace(".", "_"): int(text) if text.isdigit() else text for name, text in settings.items()
    }
    commits_each_poll = commits == "poll"
    member = Member()
    keywords |= {"group_id": group, "group_protocol": protocol, "enable_auto_commit": not commits_each_poll}
    consumer = Consumer(bootstrap, **keywords)
    await consumer.start()
    report("ready")
    await member.joining.wait()
    await consumer.subscribe(re.compile(pattern), member)
    while not member.is_closing:
        try:
            await read(consumer, commits_each_poll=commits_each_poll)
        except ClientError as error:
            report("error", error=f"{type(error).__name__}: {error}")
    try:
        await consumer.close()
    except ClientError as error:
        report("error", error=f"{type(error).__name__}: {error}")
    report("closed")


async def read(consumer: Consumer, *, commits_each_poll: bool) -> None:
    """Poll once, print the numbers of each partition, and commit if that is wanted."""
    numbers: dict[TopicPartition, list[int]] = {}
    for record in await consumer.poll(timeout_ms=POLL_MS):
        assert record.value is not None
        numbers.setdefault(TopicPartition(record.topic, record.partition), []).append(int(record.value))
    for partition, of_partition in numbers.items():
        report("read", partition=str(partition), numbers=of_partition)
    if numbers and commits_each_poll:
        await consumer.commit()
        report("committed", partitions=names(list(numbers)))


def names(partitions: Sequence[TopicPartition]) -> list[str]:
    return [str(partition) for partition in partitions]


def report(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"at": round(time.time(), 3), "event": event, **fields}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
