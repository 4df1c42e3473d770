"""`Kafka`: a handle on a cluster for tests, which the fixture `kafka` returns."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from datetime import datetime
from typing import Any, TypeVar

from odradek.broker.explain.trace import Trace
from odradek.broker.testing.faults import BlockingFaults
from odradek.broker.testing.snapshots import Snapshot
from odradek.client.record import ConsumerRecord, RecordMetadata
from odradek.testing.aio import TIMEOUT, AsyncKafka
from odradek.testing.arguments import Config
from odradek.testing.arrivals import Condition
from odradek.testing.blocking import check_no_loop
from odradek.testing.clock import KafkaClock
from odradek.testing.sending import Headers, Sendable

T = TypeVar("T")

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class Kafka:
    """A cluster as a test uses it; `aio` has the same methods for tests with an event loop.

    The methods block, so on a thread with a running event loop they raise RuntimeError, which names the method of
    `aio`. They raise ClientError, and the waits `KafkaTimeoutError` after `timeout` seconds.
    """

    def __init__(self, aio: AsyncKafka) -> None:
        self.aio = aio

    def __repr__(self) -> str:
        return f"<Kafka {self.bootstrap}>"

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers for the program under test."""
        return self.aio.bootstrap

    def topic(
        self,
        name: str,
        partitions: int | None = None,
        config: Config | None = None,
        replication_factor: int | None = None,
    ) -> str:
        """Create a topic, with one partition by default, and return its name: see `AsyncKafka.topic`."""
        return self._run(self.aio.topic(name, partitions, config, replication_factor))

    def produce(
        self,
        topic: str,
        records: Iterable[Sendable],
        headers: Headers | None = None,
        timestamp: int | datetime | None = None,
    ) -> list[RecordMetadata]:
        """Send records, each a value, a pair of key and value, or a `ConsumerRecord`: see `AsyncKafka.produce`."""
        return self._run(self.aio.produce(topic, records, headers, timestamp))

    def records(self, topic: str) -> list[ConsumerRecord]:
        """Return all records of a topic, without those of aborted transactions: see `AsyncKafka.records`."""
        return self._run(self.aio.records(topic))

    def wait_for_records(
        self,
        topic: str,
        n: int,
        where: Condition | None = None,
        timeout: float | None = TIMEOUT,
    ) -> list[ConsumerRecord]:
        """Wait until a topic has `n` records for which `where` is true, and return them."""
        return self._run(self.aio.wait_for_records(topic, n, where, timeout))

    def assert_no_records(self, topic: str, seconds: float = 1.0, where: Condition | None = None) -> None:
        """Raise AssertionError if a topic has records, or gets some within `seconds`: see `AsyncKafka`."""
        self._run(self.aio.assert_no_records(topic, seconds, where))

    def wait_for_lag_zero(self, group: str, timeout: float | None = TIMEOUT) -> None:
        """Wait until a group has committed the end of all its partitions: see `AsyncKafka.wait_for_lag_zero`."""
        self._run(self.aio.wait_for_lag_zero(group, timeout))

    def wait_for_members(self, group: str, n: int, timeout: float | None = TIMEOUT) -> None:
        """Wait until a group is stable with `n` members: see `AsyncKafka.wait_for_members`."""
        self._run(self.aio.wait_for_members(group, n, timeout))

    def describe(self) -> str:
        """Return a text about topics, groups and the last requests, as the report of a failed test shows it."""
        return self._run(self.aio.describe())

    # ----------------------------------------------------------------------------------------- of Odradek's broker only

    def stop(self) -> None:
        """Stop the broker; its data stay. The test need not start it again."""
        check_no_loop("stop")
        self.aio.own.threaded.stop()

    def start(self) -> None:
        """Start the broker again, on the same port and with the same data."""
        check_no_loop("start")
        self.aio.own.threaded.start()

    def restart(self) -> None:
        """Stop and start the broker."""
        check_no_loop("restart")
        self.aio.own.threaded.restart()

    def kill(self) -> None:
        """End the broker as `kill -9` does: it writes nothing more, and `start` recovers its logs."""
        check_no_loop("kill")
        self.aio.own.threaded.kill()

    def snapshot(self) -> Snapshot:
        """Take a snapshot of topics, records, groups and transactions, for `restore`; it lasts as long as the test."""
        check_no_loop("snapshot")
        return self.aio.own.snapshot()

    def restore(self, state: Snapshot) -> None:
        """Put everything back to a snapshot, as often as wanted. Connections are closed; clients go on by themselves.

        Raises TypeError for anything but a snapshot, ValueError if the test that took it has ended.
        """
        check_no_loop("restore")
        self.aio.own.restore(state)

    @property
    def clock(self) -> KafkaClock:
        """The broker's clock, which the test moves forward."""
        return KafkaClock(self.aio.blocking_clock)

    @property
    def faults(self) -> BlockingFaults:
        """The rules by which requests and disk fail. They end with the test; one that was never hit fails it."""
        return self.aio.faults

    @property
    def trace(self) -> Trace:
        """What the broker has done since the test began: requests, answers, transitions, file operations."""
        return self.aio.trace

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            check_no_loop(getattr(coroutine, "__name__", "…"))
        except RuntimeError:
            coroutine.close()
            raise
        return self.aio.loop.run(coroutine)
