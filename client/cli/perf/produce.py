"""`perf produce`: throughput of one producer, and the time from each record to its acknowledgement.

With more than 100,000 records, it measures the latency of an even share of them, as Kafka's ProducerPerformance does.
With --transactional-id the records are in transactions, and the time of the commits counts.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from odradek.client.cli.arguments.argument_types import separator
from odradek.client.cli.input.timed_transactions import TimedTransactions, add_transaction_arguments
from odradek.client.cli.perf.perf_arguments import add_perf_arguments, add_sending_arguments

if TYPE_CHECKING:
    from odradek.client.cli.input.sending import Outcome
    from odradek.client.cli.perf.report import Report
    from odradek.client.producer.producer import Producer

_MEASURED = 100_000  # records at most; their slowest thousandth is still a hundred
_TRANSACTION_DURATION_MS = 3000  # as in ProducerPerformance
_COLLECT_SECONDS = 0.05  # the interval in which acknowledged records are counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_perf_arguments(parser)
    add_sending_arguments(parser)
    parser.add_argument("--payload-file", metavar="PATH", help="send the lines of this file, in random order")
    parser.add_argument(
        "--payload-delimiter", type=separator, default=b"\n", metavar="TEXT", help=r"between payloads (default: \n)"
    )
    add_transaction_arguments(parser, str(_TRANSACTION_DURATION_MS))


async def run(arguments: argparse.Namespace) -> int:
    from odradek.client.cli.arguments.connection_arguments import client_settings
    from odradek.client.cli.failures import report_failure
    from odradek.client.cli.perf.payloads import payloads_of_file, random_payloads
    from odradek.client.cli.perf.report import Report
    from odradek.client.errors import ClientError
    from odradek.client.producer.producer import Producer

    try:
        if arguments.payload_file:
            payloads = payloads_of_file(arguments.payload_file, arguments.payload_delimiter)
        else:
            payloads = random_payloads(arguments.record_size)
        settings = client_settings(arguments, Producer)
        if arguments.transactional_id is not None:
            settings["transactional_id"] = arguments.transactional_id
        elif arguments.transaction_duration_ms is not None:
            settings.setdefault("transactional_id", f"perf-producer-{secrets.token_hex(8)}")
        async with Producer(arguments.bootstrap_server, **settings) as producer:
            transactions = TimedTransactions(
                producer,
                arguments.transaction_duration_ms or _TRANSACTION_DURATION_MS,
                is_transactional="transactional_id" in settings,
            )
            report = Report("sent", interval_ms=arguments.reporting_interval, as_json=arguments.json)
            with report.finished():
                outcome = await _send(producer, arguments, payloads, report, transactions)
                outcome.raise_failure()
    except (ClientError, OSError, ValueError) as error:
        return await report_failure(error, arguments)
    return 0


async def _send(
    producer: Producer,
    arguments: argparse.Namespace,
    payloads: Iterator[bytes],
    report: Report,
    transactions: TimedTransactions,
) -> Outcome:
    from odradek.client.cli.input.sending import Outcome
    from odradek.client.cli.perf.pace import Pace

    outcome = Outcome()
    pace = Pace(arguments.throughput)
    every = max(1, arguments.num_records // _MEASURED)
    collected_at, size = time.monotonic(), 0
    async with transactions:
        for number in range(1, arguments.num_records + 1):
            payload = next(payloads)
            due = await pace.next() if pace.is_bounded else time.monotonic()
            if transactions.must_begin:
                await transactions.begin()
            record = await producer.send(arguments.topic, payload)
            if number % every == 0:
                record.add_done_callback(partial(_acknowledged, report, due))
            outcome.add(record)
            size += len(payload)
            if due >= transactions.ends_at:
                await transactions.commit()
            if number == arguments.warmup_records:
                await producer.flush()
                report.end_warmup(outcome.collect())
                size = 0
            elif due - collected_at >= _COLLECT_SECONDS:
                report.add(outcome.collect(), size)
                collected_at, size = due, 0
        await producer.flush()
    report.add(outcome.collect(), size)
    return outcome


def _acknowledged(report: Report, due: float, _: object) -> None:
    report.add_latency((time.monotonic() - due) * 1000)
