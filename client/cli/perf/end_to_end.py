"""`perf e2e`: the time from sending a record to reading it.

Without `--throughput` the next record is sent when the last one was read, as in Kafka's EndToEndLatency. With it,
records are sent at that rate and read at the same time.

A record begins with 16 bytes: the number of this run and the number of the record. Other records of the topic are
skipped.
"""

from __future__ import annotations

import argparse
import struct
import time
from typing import TYPE_CHECKING

from odradek.client.cli import UsageError
from odradek.client.cli.perf.perf_arguments import add_perf_arguments, add_sending_arguments
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from asyncio import Future

    from odradek.client.cli.perf.report import Report
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.producer.producer import Producer
    from odradek.client.record import RecordMetadata

_MARK = struct.Struct(">qq")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_perf_arguments(parser)
    add_sending_arguments(parser)


async def run(arguments: argparse.Namespace) -> int:
    from odradek.client.cli.arguments.connection_arguments import settings_of_each
    from odradek.client.cli.failures import report_failure
    from odradek.client.cli.perf.report import Report
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.errors import ClientError
    from odradek.client.producer.producer import Producer

    if arguments.record_size < _MARK.size:
        raise UsageError(f"--record-size is at least {_MARK.size}, the size of the numbers that identify a record")
    try:
        of_producer, of_consumer = settings_of_each(arguments, Producer, Consumer)
        of_producer.setdefault("linger_ms", 0)
        async with (
            Producer(arguments.bootstrap_server, **of_producer) as producer,
            Consumer(arguments.bootstrap_server, **of_consumer) as consumer,
        ):
            await (await producer.send(arguments.topic, b"perf e2e begins"))  # creates the topic
            consumer.assign(await consumer.partitions_for(arguments.topic))
            await consumer.seek_to_end()
            report = Report("sent and read", interval_ms=arguments.reporting_interval, as_json=arguments.json)
            with report.finished():
                await _EndToEnd(producer, consumer, arguments, report).run()
    except (ClientError, OSError, ValueError) as error:
        return await report_failure(error, arguments)
    return 0


class _EndToEnd:
    """One run; `_due` has the time when each record that is not yet read was due."""

    def __init__(self, producer: Producer, consumer: Consumer, arguments: argparse.Namespace, report: Report) -> None:
        self._producer = producer
        self._consumer = consumer
        self._topic = arguments.topic
        self._count = arguments.num_records
        self._warmup = arguments.warmup_records
        self._rate = arguments.throughput
        self._timeout_ms = arguments.timeout_ms
        self._padding = b"x" * (arguments.record_size - _MARK.size)
        self._report = report
        self._run = time.time_ns()
        self._due: dict[int, float] = {}
        self._error: BaseException | None = None  # of the first refused record

    async def run(self) -> None:
        """Send and read all records. Raises ClientError, and ValueError if a record does not arrive in time."""
        import asyncio

        if self._rate <= 0:
            for number in range(self._count):
                await self._send(number, time.monotonic())
                await self._read_one(number + 1)
            return
        tasks = [asyncio.create_task(self._send_all()), asyncio.create_task(self._read_all())]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_all(self) -> None:
        from odradek.client.cli.perf.pace import Pace

        pace = Pace(self._rate)
        for number in range(self._count):
            await self._send(number, await pace.next())

    async def _read_all(self) -> None:
        for number in range(self._count):
            await self._read_one(number + 1)

    async def _send(self, number: int, due: float) -> None:
        self._due[number] = due
        record = await self._producer.send(self._topic, _MARK.pack(self._run, number) + self._padding)
        record.add_done_callback(self._acknowledged)

    def _acknowledged(self, record: Future[RecordMetadata]) -> None:
        if not record.cancelled():
            self._error = self._error or record.exception()

    async def _read_one(self, count: int) -> None:
        """Read record number `count`. Raises the error of a record that could not be sent."""
        while True:
            records = await self._consumer.poll(self._timeout_ms, 1)
            if self._error is not None:
                raise self._error
            if not records:
                raise ValueError(f"none of {pluralize(len(self._due), 'record')} came within {self._timeout_ms} ms")
            value = records[0].value or b""
            if len(value) >= _MARK.size and _MARK.unpack_from(value)[0] == self._run:
                break
        due = self._due.pop(_MARK.unpack_from(value)[1])
        self._report.add_latency((time.monotonic() - due) * 1000)
        self._report.add(1, len(value))
        if count == self._warmup:
            self._report.end_warmup(0)
