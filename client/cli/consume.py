"""`python -m client consume`: the values of records, a line each.

All partitions of the topic are read, or one; records of one partition come in order. A record without a value prints as
`null`, as in Kafka's console consumer. It ends after `--max-messages`, after `--timeout-ms` without a record, or by
Ctrl-C, and then says on standard error how many records there were.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from client.cli import fail
from client.cli.connection_arguments import add_connection_arguments, not_negative, positive

if TYPE_CHECKING:
    from client.consumer import Consumer

_TOPIC_TIMEOUT_MS = 5000  # a topic that is misspelt should not take a minute to tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    parser.add_argument("--partition", type=not_negative, metavar="N", help="this partition only (default: all)")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="begin with the first record, not with new ones")
    start.add_argument(
        "--offset", type=_offset, default="latest", metavar="N|earliest|latest", help="where to begin (default: latest)"
    )
    parser.add_argument("--max-messages", type=positive, metavar="N", help="end after this many records")
    parser.add_argument("--timeout-ms", type=positive, metavar="MS", help="end after this time without a record")
    parser.add_argument(
        "--isolation-level",
        choices=("read_uncommitted", "read_committed"),
        default="read_uncommitted",
        help="default: %(default)s",
    )


async def run(arguments: argparse.Namespace) -> int:
    from client.consumer import Consumer
    from client.errors import ClientError

    offset = "earliest" if arguments.from_beginning else arguments.offset
    try:
        async with Consumer(
            arguments.bootstrap_server,
            auto_offset_reset="earliest" if offset == "earliest" else "latest",
            isolation_level=arguments.isolation_level,
            default_api_timeout_ms=_TOPIC_TIMEOUT_MS,
        ) as consumer:
            partitions = await consumer.partitions_for(arguments.topic)
            if arguments.partition is not None:
                partitions = [partition for partition in partitions if partition.partition == arguments.partition]
                if not partitions:
                    return fail(ValueError(f"topic {arguments.topic} has no partition {arguments.partition}"))
            consumer.assign(partitions)
            if isinstance(offset, int):
                for partition in partitions:
                    consumer.seek(partition, offset)
            await _print(consumer, arguments.max_messages, arguments.timeout_ms)
    except BrokenPipeError:
        raise
    except (ClientError, OSError) as error:
        return fail(error)
    return 0


async def _print(consumer: Consumer, max_messages: int | None, timeout_ms: int | None) -> None:
    out = sys.stdout.buffer
    count = 0
    try:
        while max_messages is None or count < max_messages:
            left = None if max_messages is None else max_messages - count
            records = await consumer.poll(timeout_ms, min(left, 500) if left else None)
            if not records:
                break
            out.write(b"".join(b"%b\n" % (b"null" if record.value is None else record.value) for record in records))
            out.flush()
            count += len(records)
    finally:
        print(f"Processed a total of {count} messages", file=sys.stderr)


def _offset(text: str) -> int | str:
    if text in ("earliest", "latest"):
        return text
    try:
        return not_negative(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not an offset: give a number, earliest or latest") from None
