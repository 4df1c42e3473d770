"""`odradek consume`: print the records of a topic as text, as JSON or by a format string.

It reads all partitions, some of them, or those that a group assigns; records of one partition are printed in order.
`reading_range` describes where it begins and ends. It also ends after `--max-messages`, after `--timeout-ms` without a
record, and at Ctrl-C. It then prints the number of records on standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any

from odradek.client.cli import UsageError
from odradek.client.cli.arguments.argument_types import assignment, milliseconds, named, not_negative, positive
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments, add_topic_argument
from odradek.client.cli.arguments.times import timestamp
from odradek.client.cli.reading_range import ReadingRange, Start, start

if TYPE_CHECKING:
    from odradek.client.cli.output.record_formats import Format
    from odradek.client.cli.record_filter import Condition
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.record import TopicPartition

from odradek.commands import RECORDS_OF_LOG_DIR

_TOPIC_TIMEOUT_MS = 5000  # a misspelt topic is reported soon, not after a minute
_PRINTABLE = ("key", "value", "headers", "timestamp", "partition", "offset")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_topic_argument(parser)
    _add_range_arguments(parser.add_argument_group("what is read"))
    _add_output_arguments(parser.add_argument_group("output"))


def _add_range_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--log-dir", metavar="DIR", help="read this log directory, without a broker, to the end of each partition"
    )
    group.add_argument(
        "--partition", type=_partitions, metavar="N[,N]", help="these partitions only (default: all of the topic)"
    )
    group.add_argument(
        "--group",
        type=named,
        metavar="ID",
        help="join this group: share the partitions with its other members, and commit what was read",
    )
    begin = group.add_mutually_exclusive_group()
    begin.add_argument("--from-beginning", action="store_true", help="begin with the first record, not with new ones")
    begin.add_argument(
        "--offset",
        type=start,
        metavar="N|-N|earliest|latest",
        help="begin here (default: latest; of a log directory: earliest)",
    )
    begin.add_argument(
        "--from-timestamp", type=timestamp, metavar="TIME", help="begin here: ms, ISO 8601, or -1h for an hour ago"
    )
    group.add_argument("--to-offset", type=not_negative, metavar="N", help="end before this offset")
    group.add_argument(
        "--to-timestamp", type=timestamp, metavar="TIME", help="end before the first record at or after this time"
    )
    group.add_argument(
        "--follow",
        action=argparse.BooleanOptionalAction,
        help="wait for new records; --no-follow ends at the present end (default: follow, unless an end is given)",
    )
    group.add_argument("--max-messages", type=positive, metavar="N", help="end after this many records")
    group.add_argument("--timeout-ms", type=milliseconds, metavar="MS", help="end after this time without a record")
    group.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="CONDITION",
        help="only records with key=TEXT, value~REGEX, header.NAME!=TEXT, …; several must all hold",
    )
    group.add_argument(
        "--isolation-level",
        choices=("read_uncommitted", "read_committed"),
        default="read_uncommitted",
        help="default: %(default)s",
    )


def _add_output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--format",
        default="text",
        metavar="text|json|STRING",
        help=r"lines of text, lines of JSON, or a format string as kcat's: '%%p %%o %%k %%s\n' (default: %(default)s)",
    )
    group.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    group.add_argument(
        "--print",
        type=_printed,
        default=(),
        metavar="PART[,PART]",
        help=f"with text, in this tool's order: {', '.join(_PRINTABLE)} (default: value)",
    )
    group.add_argument(
        "--formatter-property",
        "--property",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="with text, a property of Kafka's console consumer: print.key=true, key.separator=…, …",
    )


def run(arguments: argparse.Namespace) -> int | Coroutine[None, None, int]:
    if arguments.log_dir is None:
        return _consume(arguments)
    if arguments.group is not None or arguments.follow or arguments.timeout_ms is not None:
        raise UsageError("a log directory has no groups and no new records: leave out --group, --follow, --timeout-ms")
    read: int = import_module(RECORDS_OF_LOG_DIR).print_records(
        arguments, _wanted(arguments), _conditions(arguments.filter), _format(arguments)
    )
    return read


async def _consume(arguments: argparse.Namespace) -> int:
    from odradek.client.cli.arguments.connection_arguments import client_settings
    from odradek.client.cli.failures import report_failure
    from odradek.client.cli.reading import Reading
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.errors import ClientError

    wanted = _wanted(arguments)
    output_format = _format(arguments)
    conditions = _conditions(arguments.filter)
    settings: dict[str, Any] = {
        "auto_offset_reset": "earliest" if wanted.start == "earliest" else "latest",
        "isolation_level": arguments.isolation_level,
        "default_api_timeout_ms": _TOPIC_TIMEOUT_MS,
    }
    if arguments.group is not None:
        settings["group_id"] = arguments.group
    try:
        settings |= client_settings(arguments, Consumer)
        async with Consumer(arguments.bootstrap_server, **settings) as consumer:
            partitions = await _chosen(consumer, arguments.topic, arguments.partition)
            reading = Reading(consumer, wanted, conditions, output_format)
            if arguments.group is None:
                begin = reading.assign(partitions)
            else:
                begin = reading.subscribe(arguments.topic, commits=settings.get("enable_auto_commit", True))
            await reading.run(begin, arguments.max_messages, arguments.timeout_ms)
    except BrokenPipeError:
        raise
    except (ClientError, OSError, ValueError) as error:
        return await report_failure(error, arguments)
    return 0


async def _chosen(consumer: Consumer, topic: str, numbers: list[int] | None) -> list[TopicPartition]:
    partitions = await consumer.partitions_for(topic)
    if numbers is None:
        return partitions
    missing = [number for number in numbers if number >= len(partitions)]
    if missing:
        raise ValueError(f"topic {topic} has no partition {missing[0]}")
    return [partitions[number] for number in numbers]


def _wanted(arguments: argparse.Namespace) -> ReadingRange:
    """Return the range to read. Raises UsageError for a part of it that a group decides."""
    has_end = arguments.to_offset is not None or arguments.to_timestamp is not None
    if arguments.group is not None and (
        has_end
        or arguments.partition is not None
        or arguments.from_timestamp is not None
        or isinstance(arguments.offset, int)
        or arguments.follow is False
    ):
        raise UsageError(
            "a group decides which partitions are read, and from which offset: with --group, use only --from-beginning,"
            " --max-messages and --timeout-ms"
        )
    default: Start = "latest" if arguments.log_dir is None else "earliest"
    return ReadingRange(
        "earliest" if arguments.from_beginning else default if arguments.offset is None else arguments.offset,
        arguments.from_timestamp,
        arguments.to_offset,
        arguments.to_timestamp,
        follows=not has_end if arguments.follow is None else arguments.follow,
    )


def _format(arguments: argparse.Namespace) -> Format:
    """Return the function that formats records. Raises UsageError for flags that exclude each other."""
    from odradek.client.cli.output.record_formats import PROPERTIES, compile_format, from_properties

    parts = [("print.value", str("value" in arguments.print))] if arguments.print else []
    parts += [(f"print.{part}", "true") for part in arguments.print]
    parts += arguments.formatter_property
    if arguments.format != "text" and parts:
        raise UsageError("--print and --formatter-property are for --format text")
    unknown = [name for name, _ in parts if name not in PROPERTIES]
    if unknown:
        raise UsageError(f"there is no formatter property {unknown[0]}: there are {', '.join(PROPERTIES)}")
    if arguments.format == "text":
        return from_properties(parts).format
    if arguments.format == "json":
        from odradek.client.cli.input.json_records import format_json

        return format_json
    if not set("%\\") & set(arguments.format):
        raise UsageError(f"--format {arguments.format} is not text, json, nor a format string with a % or \\ in it")
    try:
        return compile_format(arguments.format)
    except ValueError as error:
        raise UsageError(f"--format: {error}") from None


def _conditions(texts: list[str]) -> list[Condition]:
    from odradek.client.cli.record_filter import condition

    try:
        return [condition(text) for text in texts]
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--filter: {error}") from None


def _partitions(text: str) -> list[int]:
    return sorted({not_negative(number) for number in text.split(",")})


def _printed(text: str) -> list[str]:
    parts = text.split(",")
    unknown = [part for part in parts if part not in _PRINTABLE]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no part {unknown[0]!r}: there are {', '.join(_PRINTABLE)}")
    return parts
