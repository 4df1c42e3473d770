"""The command `dump-log`: print the files of a log directory as Kafka's DumpLogSegments does.

The flags are Kafka's. Where Kafka's tool ends with a stack trace, this one prints what came before it, then one line on
standard error, and exits with 1 as well. It needs no broker and changes no file. The printers are imported when it
runs, so that `--help` and mistakes are answered at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from odradek.broker.inspection.dump.complaints import Complaint, DumpError
from odradek.broker.inspection.dump.options import DumpOptions
from odradek.broker.inspection.dump.record_text import RecordText, string_text

_STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"
_INT32_MAX = (1 << 31) - 1
_CHUNK = 1024  # pieces, mostly lines, that are written at once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", type=_file_names, required=True, metavar="FILE[,FILE]", help="the files to dump")
    parser.add_argument(
        "--print-data-log", action="store_true", help="print keys and values (implies --deep-iteration)"
    )
    parser.add_argument("--deep-iteration", action="store_true", help="print records, not only batches")
    parser.add_argument(
        "--index-sanity-check", action="store_true", help="check indexes as a broker does when it starts"
    )
    parser.add_argument(
        "--verify-index-only", action="store_true", help="hold indexes against the log, print no entries"
    )
    parser.add_argument(
        "--max-message-size", type=_int32, default=5 * 1024 * 1024, metavar="BYTES", help="of the largest batch"
    )
    parser.add_argument("--max-bytes", type=_int32, default=_INT32_MAX, metavar="BYTES", help="to look at of each .log")
    parser.add_argument("--skip-record-metadata", action="store_true", help="print keys and values only")
    for part in ("key", "value"):
        parser.add_argument(
            f"--{part}-decoder-class",
            nargs="?",
            type=_decoder_class,
            const=_STRING_DECODER,
            metavar="CLASS",
            help=f"print each {part} as text (there is {_STRING_DECODER} only)",
        )
    parser.add_argument("--offsets-decoder", action="store_true", help="for __consumer_offsets: records as JSON")
    parser.add_argument(
        "--transaction-log-decoder", action="store_true", help="for __transaction_state: records as JSON"
    )
    for topic in ("cluster-metadata", "remote-log-metadata", "share-group-state"):
        parser.add_argument(f"--{topic}-decoder", nargs=0, action=_NotSupported, help="not supported")


def run(arguments: argparse.Namespace) -> int:
    """Dump the files, and return the exit status. Raises BrokenPipeError when the reader of the output is gone."""
    from odradek.broker.inspection.dump.segments import dump_segments
    from odradek.protocol.errors import RemoteProtocolError

    try:
        _print(dump_segments(arguments.files, _options(arguments)))
    except BrokenPipeError:
        raise
    except (DumpError, RemoteProtocolError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _print(pieces: Iterator[str]) -> None:
    """Print the pieces, also those in front of an error or of Ctrl-C."""
    out: list[str] = []
    try:
        for piece in pieces:
            if piece.__class__ is Complaint:
                _write(out)
                sys.stderr.write(piece)
                continue
            out.append(piece)
            if len(out) >= _CHUNK:
                _write(out)
    finally:
        _write(out)


def _write(out: list[str]) -> None:
    sys.stdout.buffer.write("".join(out).encode(errors="surrogateescape"))
    sys.stdout.buffer.flush()
    out.clear()


def _options(arguments: argparse.Namespace) -> DumpOptions:
    from odradek.broker.inspection.dump.coordinator_records import offsets_text, transaction_log_text

    record_text: RecordText = string_text
    if arguments.offsets_decoder:
        record_text = offsets_text
    elif arguments.transaction_log_decoder:
        record_text = transaction_log_text
    prints_contents = (
        arguments.print_data_log
        or record_text is not string_text
        or arguments.key_decoder_class is not None
        or arguments.value_decoder_class is not None
    )
    return DumpOptions(
        is_deep=arguments.deep_iteration or prints_contents,
        prints_contents=prints_contents,
        skips_record_metadata=arguments.skip_record_metadata,
        checks_sanity=arguments.index_sanity_check,
        verifies_only=arguments.verify_index_only,
        max_bytes=arguments.max_bytes,
        max_message_size=arguments.max_message_size,
        record_text=record_text,
    )


class _NotSupported(argparse.Action):
    """A decoder that Kafka has and we do not."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(f"{self.option_strings[0]} is not supported")


def _file_names(text: str) -> list[str]:
    names = text.rstrip(",")
    if not names:
        raise argparse.ArgumentTypeError("no file is named")
    return names.split(",")


def _decoder_class(text: str) -> str:
    if text != _STRING_DECODER:
        raise argparse.ArgumentTypeError(f"there is no class {text}: only {_STRING_DECODER} is supported")
    return text


def _int32(text: str) -> int:
    number = int(text)
    if not -_INT32_MAX - 1 <= number <= _INT32_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a number of 32 bits")
    return number
