"""The results of a command: a table for people, or one JSON document with `--json`.

A column has one name, in snake case: `log_end_offset` is the member of the JSON objects, LOG-END-OFFSET the heading. A
table aligns numbers to the right, prints None as `-` and joins lists by commas; the command formats durations and times
itself. In JSON values keep their types.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odradek.client.cli.output.terminal import BOLD, paint

Row = Mapping[str, Any]


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def print_rows(columns: Sequence[str], rows: Iterable[Row], *, as_json: bool) -> None:
    """Print rows: an array of objects, or a table under headings; a table without rows prints nothing."""
    if as_json:
        print_json([{column: row.get(column) for column in columns} for row in rows])
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    if not cells:
        return
    headings = [column.upper().replace("_", "-") for column in columns]
    are_numbers = [all(_is_number(line[index]) for line in cells) for index in range(len(columns))]
    widths = [max(len(line[index]) for line in (headings, *cells)) for index in range(len(columns))]
    print(paint(_line(headings, widths, are_numbers), BOLD, sys.stdout))
    for line in cells:
        print(_line(line, widths, are_numbers))


def print_json(document: Any) -> None:
    """Print an indented JSON document; text is not escaped, except bytes that are not UTF-8.

    Numbers that JSON does not have are texts, as in Kafka's tools: "NaN", "Infinity".
    """
    import json

    text = json.dumps(_with_json_numbers(document), indent=2, ensure_ascii=False, allow_nan=False)
    print(text.encode(errors="backslashreplace").decode())


def _with_json_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_json_numbers(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_json_numbers(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _line(cells: Sequence[str], widths: Sequence[int], are_numbers: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if is_number else cell.ljust(width)
        for cell, width, is_number in zip(cells, widths, are_numbers, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "-"
    return str(value)


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.removeprefix("-").replace(".", "", 1).isdecimal()
