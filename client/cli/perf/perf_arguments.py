"""The flags that all measurements share."""

from __future__ import annotations

import argparse

from odradek.client.cli.arguments.argument_types import milliseconds, not_negative, number_of, positive
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments, add_topic_argument
from odradek.client.cli.output.tables import add_json_argument

_LARGEST_RECORD = 1 << 30  # ten times what brokers take by default (socket.request.max.bytes)


def add_perf_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_topic_argument(parser)
    parser.add_argument("--num-records", type=positive, required=True, metavar="N", help="how many records")
    parser.add_argument(
        "--warmup-records", type=not_negative, default=0, metavar="N", help="the first N of them are not measured"
    )
    parser.add_argument(
        "--reporting-interval",
        type=milliseconds,
        default=5000,
        metavar="MS",
        help="print a line this often (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout-ms", type=milliseconds, default=10000, metavar="MS", help="give up after this time without a record"
    )
    add_json_argument(parser)


def add_sending_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--record-size",
        type=_record_size,
        default=100,
        metavar="BYTES",
        help="of random letters (default: %(default)s)",
    )
    parser.add_argument(
        "--throughput", type=float, default=-1, metavar="N", help="records a second; -1: as fast as it goes (default)"
    )


def _record_size(text: str) -> int:
    size = number_of("bytes, such as 1000", 1)(text)
    if size > _LARGEST_RECORD:
        raise argparse.ArgumentTypeError(f"{text} bytes are more than any broker accepts in a request")
    return size
