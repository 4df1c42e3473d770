"""`python -m client produce`: a record for each line of standard input or of a file.

With `--key-separator` a line is the key, the separator, the value. Records are sent as lines come; the command ends
when all are acknowledged. Ctrl-C ends it too, after what was read before has been sent.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from client.cli import fail
from client.cli.connection_arguments import add_connection_arguments

if TYPE_CHECKING:
    import asyncio

    from client.config import Acks
    from client.producer import Producer
    from client.record import RecordMetadata

_STDIN = 0
_ACKS: dict[str, Acks] = {"0": 0, "1": 1, "-1": -1, "all": "all"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    parser.add_argument("--file", metavar="PATH", help="read lines from here instead of standard input")
    parser.add_argument("--key-separator", metavar="TEXT", help="each line is a key, this text, and a value")
    parser.add_argument("--acks", choices=tuple(_ACKS), default="all", help="default: %(default)s")
    parser.add_argument(
        "--compression-type",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="default: %(default)s",
    )


async def run(arguments: argparse.Namespace) -> int:
    from client.errors import ClientError
    from client.producer import Producer

    acks: Acks = _ACKS[arguments.acks]
    try:
        descriptor = os.open(arguments.file, os.O_RDONLY) if arguments.file else _STDIN
        async with Producer(
            arguments.bootstrap_server, acks=acks, compression_type=arguments.compression_type
        ) as producer:
            separator = arguments.key_separator.encode() if arguments.key_separator else None
            outcome = await _send_lines(producer, arguments.topic, descriptor, separator)
    except (ClientError, OSError, _LineError) as error:
        return fail(error)
    if outcome.error is not None:
        print(f"{outcome.failed} of {outcome.sent} records were not acknowledged", file=sys.stderr)
        return fail(outcome.error)
    return 0


class _LineError(Exception):
    """A line that is no record."""


class _Outcome:
    """What became of the records so far; `error` is that of the first that failed."""

    def __init__(self) -> None:
        self.sent = 0
        self.failed = 0
        self.error: BaseException | None = None
        self._waiting: list[asyncio.Future[RecordMetadata]] = []

    def add(self, record: asyncio.Future[RecordMetadata]) -> None:
        self.sent += 1
        self._waiting.append(record)

    def look(self) -> None:
        """Count those that are done, and forget them."""
        waiting = []
        for record in self._waiting:
            if not record.done():
                waiting.append(record)
            elif (error := record.exception()) is not None:
                self.failed += 1
                self.error = self.error or error
        self._waiting = waiting


async def _send_lines(producer: Producer, topic: str, descriptor: int, separator: bytes | None) -> _Outcome:
    from client.cli.lines import read_lines

    outcome = _Outcome()
    async for lines in read_lines(descriptor):
        for line in lines:
            key, value = (None, line) if separator is None else _split(line, separator, outcome.sent + 1)
            outcome.add(await producer.send(topic, value, key=key))
        outcome.look()
    await producer.flush()
    outcome.look()
    return outcome


def _split(line: bytes, separator: bytes, number: int) -> tuple[bytes, bytes]:
    key, found, value = line.partition(separator)
    if not found:
        raise _LineError(f"line {number} has no key: {separator.decode()!r} is not in it")
    return key, value
