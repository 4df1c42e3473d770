"""`AsyncKafka`: a handle on a cluster for tests with an event loop; `kafka.aio` in a test with the fixture `kafka`.

```
test's loop ─► AsyncKafka.records(…) ─► the handle's own loop: clients, waits ─► result
test's thread ─► Kafka.records(…) ────► the same
```

All work happens on the loop of a `LoopThread`, so one handle serves tests with and without a loop, in any order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from odradek.broker.explain.trace import Trace
from odradek.broker.testing.blocking_clock import BlockingClock
from odradek.broker.testing.faults import BlockingFaults
from odradek.broker.testing.loop_thread import LoopThread
from odradek.broker.testing.snapshots import Snapshot
from odradek.client.errors import ClientError, TopicExistsError, UnknownTopicError
from odradek.client.record import ConsumerRecord, RecordMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.plural import pluralize
from odradek.testing.arguments import Config, check_condition, check_count, check_name, check_seconds
from odradek.testing.arrivals import Arrivals, Condition
from odradek.testing.blocking import in_thread
from odradek.testing.clients import Clients
from odradek.testing.clock import AsyncKafkaClock
from odradek.testing.cluster import Cluster
from odradek.testing.errors import KafkaTimeoutError
from odradek.testing.groups import group_lines, has_members, is_at_lag_zero
from odradek.testing.own_broker import OwnBroker
from odradek.testing.reading import partitions_of, read_all, settled_ends
from odradek.testing.report import describe, described, topic_line
from odradek.testing.sending import Headers, Sendable, send, stamp_of
from odradek.testing.topics import check_existing, new_topic

P = ParamSpec("P")
T = TypeVar("T")

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

TIMEOUT = 10.0
"""Seconds that a wait takes at most, unless the test says otherwise."""


def _on_own_loop(
    method: Callable[Concatenate[AsyncKafka, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[AsyncKafka, P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def call(self: AsyncKafka, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self.loop.run_here(method(self, *args, **kwargs))
        except ClientError as error:  # its message says what has failed, and the client's lines say no more
            raise error.with_traceback(None) from None

    return call


class AsyncKafka:
    """A cluster as a test uses it. Its methods may be awaited on any event loop, several at a time.

    They raise ClientError, and the waits `KafkaTimeoutError` after `timeout` seconds.
    """

    def __init__(self, cluster: Cluster, loop: LoopThread) -> None:
        self.cluster = cluster
        self.loop = loop
        self.clients = Clients(cluster.bootstrap)

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers for the program under test."""
        return self.cluster.bootstrap

    @_on_own_loop
    async def topic(
        self,
        name: str,
        partitions: int | None = None,
        config: Config | None = None,
        replication_factor: int | None = None,
    ) -> str:
        """Create a topic and return its name. By default it has one partition, and the broker's replication factor.

        `config` has the properties of the topic by their names in Kafka, with strings, numbers or bools as values.

        The name is `name`, except in a cluster that `--kafka` names without `--kafka-exact-names`: there each test has
        its own topics, and all methods of the handle take either name. Returns the topic if the test has it already.
        Raises ValueError if that has another number of partitions or replicas, or another value of a property, and
        with `--kafka-exact-names` if the topic is older than the tests.
        """
        wanted = new_topic(name, partitions, config, replication_factor)
        admin = await self.clients.admin()
        real_name = await self.cluster.name_to_create(name, self.clients)
        try:
            (await admin.create_topics([replace(wanted, name=real_name)])).value(real_name)
        except TopicExistsError:
            await check_existing(admin, real_name, wanted, any_partitions=partitions is None)
        return real_name

    @_on_own_loop
    async def produce(
        self,
        topic: str,
        records: Iterable[Sendable],
        headers: Headers | None = None,
        timestamp: int | datetime | None = None,
    ) -> list[RecordMetadata]:
        """Send records in order, and return their places when all are acknowledged.

        A record is its value, a pair of key and value, or a `ConsumerRecord`, of which partition, key, value, headers
        and timestamp are sent. `headers` and `timestamp` (ms since the epoch, or a datetime with a time zone) are for
        all records of the call, and override those of a `ConsumerRecord`. Without a timestamp a record has the present
        time: by the broker's clock if the test has moved that, else by the clock of this process.

        Raises TypeError for anything else, and ValueError for a negative timestamp.
        """
        stamp = stamp_of(headers, timestamp, self.cluster.time_ms())
        return await send(await self.clients.producer(), self._real_name(topic), records, stamp)

    @_on_own_loop
    async def records(self, topic: str) -> list[ConsumerRecord]:
        """Return all records of a topic, by partition and offset, without those of aborted and open transactions.

        Raises UnknownTopicError if the topic does not exist.
        """
        name = self._real_name(topic)
        admin = await self.clients.admin()
        partitions = await partitions_of(admin, name)
        if partitions is None:
            raise UnknownTopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "read its records", topic=name)
        check = partial(settled_ends, admin, partitions)
        ends = await self._wait(check, f"the end of transactions in {name}", _nothing)
        async with self.clients.consumer() as consumer:
            return await read_all(consumer, ends)

    @_on_own_loop
    async def wait_for_records(
        self,
        topic: str,
        n: int,
        where: Condition | None = None,
        timeout: float | None = TIMEOUT,
    ) -> list[ConsumerRecord]:
        """Wait until a topic has `n` records, or `n` for which `where` is true, and return the first `n` of them.

        The topic need not exist yet. Records of aborted and open transactions do not count.
        """
        check_count("n", n, 1, "kafka.assert_no_records checks that a topic stays empty")
        check_condition(where)
        check_seconds("timeout", timeout, endless=True)
        name = self._real_name(topic)
        arrivals = Arrivals(where)
        check = partial(self._read_until, name, n, arrivals)
        waited_for = f"{pluralize(n, 'record')} of {name}{' that the test wants' if where else ''}"
        await self._wait(check, waited_for, partial(self._topic_lines, name, arrivals), timeout)
        return arrivals.wanted[:n]

    @_on_own_loop
    async def assert_no_records(self, topic: str, seconds: float = 1.0, where: Condition | None = None) -> None:
        """Raise AssertionError, with the records, if a topic has any, or gets any within so many seconds.

        With `where` only those count for which it is true; those of aborted and open transactions never do. With 0
        seconds only what is there counts. Raises UnknownTopicError if the topic does not exist at the end: a wrong name
        would otherwise pass.
        """
        check_condition(where)
        check_seconds("seconds", seconds)
        name = self._real_name(topic)
        arrivals = Arrivals(where)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self._first(partial(self._read_until, name, 1, arrivals))
        except TimeoutError:
            if not limit.expired():
                raise
        if not arrivals.wanted:
            arrivals.clear()
            for record in await self.records(name):
                arrivals.add(record)
        if arrivals.wanted:
            which = " for which the test's condition is true" if where else ""
            lines = [*arrivals.lines(), *self.cluster.report_lines()]
            raise AssertionError("\n".join([f"{name} should have no records{which}, within {seconds:g} s", *lines]))

    @_on_own_loop
    async def wait_for_lag_zero(self, group: str, timeout: float | None = TIMEOUT) -> None:
        """Wait until a group has committed the end of each partition that it owns or has committed offsets for.

        The group need not exist yet; without committed offsets it is not at lag zero.
        """
        check_name("group", group)
        check_seconds("timeout", timeout, endless=True)
        check = partial(is_at_lag_zero, self.clients, group)
        await self._until(check, f"lag zero of group {group}", partial(self._group_lines, group), timeout)

    @_on_own_loop
    async def wait_for_members(self, group: str, n: int, timeout: float | None = TIMEOUT) -> None:
        """Wait until a group is stable with `n` members, all of which have their partitions; with 0, until it is empty.

        The group need not exist yet.
        """
        check_name("group", group)
        check_count("n", n, 0)
        check_seconds("timeout", timeout, endless=True)

        async def check() -> bool:
            return await has_members(await self.clients.admin(), group, n)

        waited_for = f"{pluralize(n, 'member')} of group {group}"
        await self._until(check, waited_for, partial(self._group_lines, group), timeout)

    @_on_own_loop
    async def describe(self) -> str:
        """Return a text about topics, groups and the last requests, as the report of a failed test shows it."""
        return await describe(self.clients, self.cluster)

    # ----------------------------------------------------------------------------------------- of Odradek's broker only

    @property
    def own(self) -> OwnBroker:
        """The broker, if it is Odradek's and runs in this process; for another cluster the test is skipped."""
        if not isinstance(self.cluster, OwnBroker):
            import pytest  # of the tests: a program without it has no other cluster

            pytest.skip(
                f"it needs a broker of Odradek in this process, and --kafka={self.bootstrap} names another cluster"
            )
        return self.cluster

    async def stop(self) -> None:
        """See `Kafka.stop`, and there for the next ones."""
        await in_thread(self.own.threaded.stop)

    async def start(self) -> None:
        await in_thread(self.own.threaded.start)

    async def restart(self) -> None:
        await in_thread(self.own.threaded.restart)

    async def kill(self) -> None:
        await in_thread(self.own.threaded.kill)

    async def snapshot(self) -> Snapshot:
        return await in_thread(self.own.snapshot)

    async def restore(self, state: Snapshot) -> None:
        await in_thread(self.own.restore, state)

    @property
    def clock(self) -> AsyncKafkaClock:
        return AsyncKafkaClock(self.blocking_clock)

    def blocking_clock(self) -> BlockingClock:
        """The broker's clock, for threads without a running event loop."""
        return BlockingClock(self.own.threaded)

    @property
    def faults(self) -> BlockingFaults:
        """The same object as `Kafka.faults`: making a rule does not wait for anything."""
        return self.own.faults

    @property
    def trace(self) -> Trace:
        return self.own.trace

    def _real_name(self, topic: str) -> str:
        check_name("topic", topic)
        return self.cluster.real_name(topic)

    # -------------------------------------------------------------------------------------------------------- waits

    async def _wait(
        self,
        check: Callable[[], Awaitable[T | None]],
        waited_for: str,
        lines: Callable[[], Awaitable[list[str]]],
        timeout: float | None = TIMEOUT,
    ) -> T:
        """Return the first result of `check` that is not None. Raises `KafkaTimeoutError`, which shows `lines`."""
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await self._first(check)
        except TimeoutError:
            if not limit.expired():
                raise
        about = [*await described(lines()), *self.cluster.report_lines()]
        raise KafkaTimeoutError("\n".join([f"waited {timeout:g} s for {waited_for}", *about]))

    async def _first(self, check: Callable[[], Awaitable[T | None]]) -> T:
        """Return the first result of `check` that is not None; after each change in the cluster it is called again."""
        while True:
            changes = self.cluster.changes
            try:
                if (result := await check()) is not None:
                    return result
            except ClientError as error:
                if not error.retriable:
                    raise
            await self.cluster.change(changes)

    async def _until(
        self,
        check: Callable[[], Awaitable[bool]],
        waited_for: str,
        lines: Callable[[], Awaitable[list[str]]],
        timeout: float | None,
    ) -> None:
        async def is_true() -> bool | None:
            return await check() or None

        await self._wait(is_true, waited_for, lines, timeout)

    async def _read_until(self, name: str, n: int, arrivals: Arrivals) -> bool | None:
        """Read a topic from its beginning until `n` wanted records are there; return None if it does not exist."""
        arrivals.clear()  # of an attempt that a restart of the broker has ended
        partitions = await partitions_of(await self.clients.admin(), name)
        if partitions is None:
            return None
        async with self.clients.consumer() as consumer:
            consumer.assign(partitions)
            while len(arrivals.wanted) < n:
                for record in await consumer.poll():
                    arrivals.add(record)
        return True

    async def _group_lines(self, group: str) -> list[str]:
        return [*await self.cluster.mistakes(self.clients), *await group_lines(await self.clients.admin(), group)]

    async def _topic_lines(self, name: str, arrivals: Arrivals) -> list[str]:
        admin = await self.clients.admin()
        listing = (await admin.list_topics()).get(name)
        lines = await self.cluster.mistakes(self.clients)
        lines.append(f"topic {name} does not exist" if listing is None else await topic_line(admin, name, listing))
        lines += arrivals.lines()
        for group in await admin.list_groups():
            lines += await group_lines(admin, group)
        return lines


async def _nothing() -> list[str]:
    return []
