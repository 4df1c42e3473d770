"""`odradek protocol`, and `python -m protocol` in a checkout: Kafka's APIs, the layouts of messages, bytes explained.

| command | prints |
|---|---|
| `list` | the APIs with their keys and versions |
| `show API` | the versions of an API, and what each changed |
| `show API VERSION` | the layout of that version, and its codec |
| `decode request API VERSION HEX`, `decode response …` | each field of the bytes with its offset and value |

The exit status is 0, 1 if the bytes are malformed, 2 if the command line is wrong.
"""

from __future__ import annotations

import argparse
import difflib
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence

from odradek.argument_parser import ArgumentParser
from odradek.commands import PROTOCOL, unknown_command
from odradek.protocol.api import NAMES, Api, by_name
from odradek.protocol.cli.api_text import show_history, show_list, show_version
from odradek.protocol.cli.explainer import Explainer, Row
from odradek.protocol.errors import RemoteProtocolError

HEX_BYTES_SHOWN = 8  # of a row; more would move its value off the screen

DECODE_HELP = """\
Explain a whole request or response: its header, its body and, by their headers, the record batches inside. Each line
gives an offset, bytes, a field and its value. The header of a request must have the given API and version; a response
does not contain them. The four bytes of size in front of a frame may be missing.
"""
EXAMPLES = """\
examples:
  {program} list
  {program} show fetch
  {program} show fetch 12
  {program} decode request api_versions 0 "0012 0000 00000007 0003 666f6f"
  {program} decode response metadata 12 - < frame.hex
"""


def main(arguments: Sequence[str], program: str = "python -m protocol") -> int:
    """Run a command line as a process and return its exit status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    return run(arguments, program)


def run(arguments: Sequence[str], program: str = "python -m protocol") -> int:
    """Run a command line and return its exit status; argparse exits by itself on `--help` and on mistakes."""
    parser = _parser(program)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in PROTOCOL:
        parser.error(unknown_command(arguments[0], PROTOCOL, program))
    options = parser.parse_args(arguments)
    if options.command == "list":
        return _print(show_list())
    api = _api(parser, options.api)
    version = options.version
    if version is not None and not api.min_version <= version <= api.max_version:
        parser.error(f"{api.name} has versions {api.min_version} to {api.max_version}, not {version}")
    if options.command == "show":
        return _print(show_history(api) if version is None else show_version(api, version))
    text = sys.stdin.read() if options.hex == ["-"] else "".join(options.hex)
    try:
        data = bytes.fromhex("".join(text.split()))
    except ValueError:
        parser.error("these are not whole bytes in hex")
    return _decode(data, api, version, options.kind == "request")


def _parser(program: str) -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog=program,
        description="Kafka's wire protocol: its APIs, their versions, and what bytes mean.",
        epilog=EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="list | show | decode")
    for name, command in PROTOCOL.items():
        description = DECODE_HELP if name == "decode" else None
        add_arguments(commands.add_parser(name, help=command.summary, description=description), name)
    return parser


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    if command == "decode":
        parser.add_argument("kind", choices=["request", "response"])
    if command in ("show", "decode"):
        parser.add_argument("api", help="as in Kafka (ListOffsets) or as its module (list_offsets)")
    if command == "show":
        parser.add_argument("version", type=int, nargs="?", help="without it: all versions, and what each changed")
    elif command == "decode":
        parser.add_argument("version", type=int)
        parser.add_argument(
            "hex", nargs="+", help="the frame in hex, white space anywhere; - reads it from standard input"
        )


def _api(parser: argparse.ArgumentParser, name: str) -> Api:
    try:
        return by_name(name)
    except KeyError:
        known = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in NAMES.values()]
        near = difflib.get_close_matches(name.lower(), known, n=1)
        parser.error(f"no API is called {name!r}{f'; did you mean {near[0]}?' if near else ''}")


def _print(lines: Iterable[str]) -> int:
    for line in lines:
        print(line)
    return 0


def _decode(data: bytes, api: Api, version: int, is_request: bool) -> int:
    """Print the fields up to the first malformed one. First bytes that equal the size are read as the size first."""
    readings = [0]
    if len(data) >= 4 and int.from_bytes(data[:4]) == len(data) - 4:
        readings.insert(0, 4)
    failed: tuple[Explainer, RemoteProtocolError] | None = None
    for start in readings:
        explainer = Explainer(data)
        try:
            if start:
                explainer.size_prefix()
            if is_request:
                explainer.request(api, version)
            else:
                explainer.response(api, version)
        except RemoteProtocolError as error:
            failed = failed or (explainer, error)
        else:
            return _print(_rows(data, explainer.rows))
    assert failed is not None
    _print(_rows(data, failed[0].rows))
    print(failed[1], file=sys.stderr)
    return 1


def _rows(data: bytes, rows: list[Row]) -> Iterator[str]:
    named = [f"{'  ' * row.depth}{row.name}" for row in rows]
    width = max(map(len, named), default=0)
    yield f"{'offset':>6}  {'bytes':<{3 * HEX_BYTES_SHOWN + 1}}  {'field':<{width}}  value"
    for row, name in zip(rows, named, strict=True):
        shown = data[row.start : min(row.end, row.start + HEX_BYTES_SHOWN)].hex(" ")
        cut = " …" if row.end - row.start > HEX_BYTES_SHOWN else ""
        yield f"{row.start:>6}  {shown + cut:<{3 * HEX_BYTES_SHOWN + 1}}  {name:<{width}}  {row.text}".rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], f"python -m {__spec__.parent}" if __spec__ else "python -m protocol"))
