"""`odradek produce`: send a record for each line of standard input or of a file.

A line is a value, or parts with separators between them (`text_lines`), or a JSON object (`json_records`). Records are
sent as lines arrive; the command ends when all are acknowledged. It ends early at Ctrl-C and at a line that cannot be
parsed, after it has sent the lines before. In transactions it then aborts the open one instead.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from odradek.client.cli import UsageError
from odradek.client.cli.arguments.argument_types import assignment, not_negative, separator
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments, add_topic_argument
from odradek.client.cli.arguments.times import record_timestamp
from odradek.client.cli.input.input_record import LineError
from odradek.client.cli.input.text_lines import PROPERTIES
from odradek.client.cli.input.timed_transactions import TimedTransactions, add_transaction_arguments

if TYPE_CHECKING:
    from odradek.client.cli.input.input_record import InputRecord, Parse
    from odradek.client.config import Acks

_STDIN = 0
_MAX_REQUEST_SIZE = 1048576  # the producer's own default
_LARGER_AS_TEXT = 8  # a byte of a record takes at most six bytes of its line: \u0041, in JSON
_ACKS: dict[str, Acks] = {"0": 0, "1": 1, "-1": -1, "all": "all"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_topic_argument(parser)
    _add_input_arguments(parser.add_argument_group("input"))
    _add_record_arguments(parser.add_argument_group("every record"))
    _add_sending_arguments(parser.add_argument_group("sending"))


def _add_input_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--file", metavar="PATH", help="read lines from here instead of standard input")
    group.add_argument(
        "--format", choices=("text", "json"), default="text", help="what a line is (default: %(default)s; docs/cli.md)"
    )
    group.add_argument(
        "--key-separator", type=separator, metavar="TEXT", help="each line is a key, this text, and a value"
    )
    group.add_argument(
        "--headers-delimiter",
        type=separator,
        metavar="TEXT",
        help="each line begins with headers, name:value,name:value, and this text",
    )
    group.add_argument("--null-marker", metavar="TEXT", help="a key or value that is just this text is null")
    group.add_argument(
        "--reader-property",
        "--property",
        action="append",
        default=[],
        type=_reader_property,
        metavar="NAME=VALUE",
        help="a property of Kafka's console producer: parse.key, key.separator, …",
    )


def _add_record_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--key", metavar="TEXT", help="the key of lines without one")
    group.add_argument(
        "--header", action="append", default=[], type=assignment, metavar="NAME=VALUE", help="a header (repeatable)"
    )
    group.add_argument("--partition", type=not_negative, metavar="N", help="send to this partition")
    group.add_argument("--timestamp", type=record_timestamp, metavar="TIME", help="ms, ISO 8601 or -1h; default: now")


def _add_sending_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--acks", "--request-required-acks", choices=tuple(_ACKS), default="all", help="default: %(default)s"
    )
    group.add_argument(
        "--compression-type",
        "--compression-codec",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="default: %(default)s",
    )
    group.add_argument(
        "--compression-level", type=int, metavar="N", help="gzip 1 to 9 (default 6), lz4 1 to 17 (9), zstd to 22 (3)"
    )
    group.add_argument(
        "--partitioner",
        choices=("default", "murmur2", "sticky", "round-robin", "random"),
        default="default",
        help="how records without a partition get one (docs/client.md; default: %(default)s)",
    )
    add_transaction_arguments(group, "at the end")
    group.add_argument("--summary", action="store_true", help="print at the end how much was sent, as on a terminal")


async def run(arguments: argparse.Namespace) -> int:
    from odradek.client.cli.arguments.connection_arguments import client_settings
    from odradek.client.cli.failures import report_failure
    from odradek.client.cli.input.sending import send_lines
    from odradek.client.cli.output.progress import Progress
    from odradek.client.cli.output.terminal import is_terminal
    from odradek.client.errors import ClientError
    from odradek.client.producer.producer import Producer

    parse = _parse(arguments)
    settings: dict[str, Any] = {
        "acks": _ACKS[arguments.acks],
        "compression_type": arguments.compression_type,
        "compression_level": arguments.compression_level,
        "partitioner": arguments.partitioner.replace("-", "_"),
        "max_request_size": _MAX_REQUEST_SIZE,
    }
    try:
        settings |= client_settings(arguments, Producer)
        if arguments.transactional_id is not None:
            settings["transactional_id"] = arguments.transactional_id
        is_transactional = "transactional_id" in settings
        if arguments.transaction_duration_ms is not None and not is_transactional:
            raise UsageError("--transaction-duration-ms needs --transactional-id")
        descriptor = os.open(arguments.file, os.O_RDONLY) if arguments.file else _STDIN
        progress = Progress(os.fstat(descriptor).st_size if arguments.file else None)
        try:
            async with (
                Producer(arguments.bootstrap_server, **settings) as producer,
                TimedTransactions(
                    producer, arguments.transaction_duration_ms, is_transactional=is_transactional
                ) as transactions,
            ):
                longest = _LARGER_AS_TEXT * settings["max_request_size"]
                outcome = await send_lines(
                    producer, arguments.topic, descriptor, parse, progress, transactions, longest_line=longest
                )
        finally:
            progress.clear()
        outcome.raise_failure()
    except (ClientError, OSError, ValueError, LineError) as error:
        return await report_failure(error, arguments)
    if arguments.summary or is_terminal(sys.stderr):
        print(progress.summary(), file=sys.stderr)
    return 0


def _parse(arguments: argparse.Namespace) -> Parse:
    """Return the function that makes records of lines. Raises UsageError for flags that exclude each other."""
    parse = _line_format(arguments)
    key = None if arguments.key is None else arguments.key.encode(errors="surrogateescape")
    headers = [(name, value.encode(errors="surrogateescape")) for name, value in arguments.header]
    partition, time = arguments.partition, arguments.timestamp
    if key is None and not headers and partition is None and time is None:
        return parse

    def complete(line: bytes, number: int) -> InputRecord | None:
        record = parse(line, number)
        return record and record._replace(
            key=key if record.key is None else record.key,
            headers=[*record.headers, *headers],
            partition=record.partition if partition is None else partition,
            timestamp=record.timestamp if time is None else time,
        )

    return complete


def _line_format(arguments: argparse.Namespace) -> Parse:
    flags = (arguments.key_separator, arguments.headers_delimiter, arguments.null_marker)
    if arguments.format == "json":
        if arguments.reader_property or any(flag is not None for flag in flags):
            raise UsageError("lines of JSON contain keys, headers and nulls: leave out the flags that separate them")
        from odradek.client.cli.input.json_records import parse_json

        return parse_json
    from odradek.client.cli.input.text_lines import from_properties

    lines = from_properties(arguments.reader_property)
    key_separator, headers_delimiter, marker = flags
    return lines._replace(
        key_separator=key_separator or lines.key_separator,
        headers_delimiter=headers_delimiter or lines.headers_delimiter,
        null_marker=lines.null_marker if marker is None else marker.encode(errors="surrogateescape"),
    ).parse


def _reader_property(text: str) -> tuple[str, str]:
    name, value = assignment(text)
    if name not in PROPERTIES:
        raise argparse.ArgumentTypeError(f"there is no {name}: there are {', '.join(sorted(PROPERTIES))}")
    return name, value
