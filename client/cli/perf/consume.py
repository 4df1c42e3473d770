"""`perf consume`: throughput of one consumer that reads all partitions of a topic."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from odradek.client.cli import fail
from odradek.client.cli.perf.perf_arguments import add_perf_arguments
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from odradek.client.cli.perf.report import Report
    from odradek.client.consumer.consumer import Consumer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_perf_arguments(parser)
    parser.add_argument("--from-latest", action="store_true", help="read new records only")


async def run(arguments: argparse.Namespace) -> int:
    from odradek.client.cli.arguments.connection_arguments import client_settings
    from odradek.client.cli.failures import report_failure
    from odradek.client.cli.perf.report import Report
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.errors import ClientError

    settings: dict[str, Any] = {
        "auto_offset_reset": "latest" if arguments.from_latest else "earliest",
        "default_api_timeout_ms": arguments.timeout_ms,  # a misspelt topic is reported soon, not after a minute
    }
    try:
        settings |= client_settings(arguments, Consumer)
        async with Consumer(arguments.bootstrap_server, **settings) as consumer:
            consumer.assign(await consumer.partitions_for(arguments.topic))
            report = Report("read", interval_ms=arguments.reporting_interval, as_json=arguments.json)
            if arguments.warmup_records:
                await _read(consumer, arguments.warmup_records, arguments.timeout_ms, report)
                report.end_warmup(0)
            count = arguments.num_records - arguments.warmup_records
            with report.finished():
                missing = await _read(consumer, count, arguments.timeout_ms, report)
    except (ClientError, OSError, ValueError) as error:
        return await report_failure(error, arguments)
    if missing:
        return fail(
            ValueError(
                f"{pluralize(missing, 'record is', 'records are')} missing: none came within {arguments.timeout_ms} ms"
            )
        )
    return 0


async def _read(consumer: Consumer, count: int, timeout_ms: int, report: Report) -> int:
    """Read `count` records; return how many did not arrive in time."""
    while count:
        records = await consumer.poll(timeout_ms, min(count, 500))
        if not records:
            break
        count -= len(records)
        report.add(len(records), sum(len(record.key or b"") + len(record.value or b"") for record in records))
    return count
