"""Counts in messages are plural only if they are not 1: `1 record`, never `1 records`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("broker", "client", "odradek/testing", "pipeline", "protocol")
KAFKAS_WORDS = ROOT / "broker" / "inspection" / "dump"  # prints what Kafka's DumpLogSegments prints
KAFKAS_TEXTS = {"{settings.max_size} members."}
"""Of messages that begin with Kafka's words, because programs search for them."""
NOUN = re.compile(
    r" (more |other |new |earlier |last )?"
    r"(batches|brokers|events|files|groups|keys|lines|members|messages|modules|offsets|partitions|records|replicas"
    r"|requests|rows|segments|topics|transactions|users)\b(?!/)"
)


def counts_with_a_plural(source: str) -> Iterator[str]:
    """The expressions of f-strings that a plural follows; constants in capitals are limits, which are not 1."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    expression = ast.unparse(value.value)
                    found = f"{{{expression}}}{text.value}"
                    if NOUN.match(str(text.value)) and is_count(expression) and found not in KAFKAS_TEXTS:
                        yield found


def is_count(expression: str) -> bool:
    return not re.search(r"[A-Z]{3}|^(name|kind|event\.creates|what)$|pluralize|_share", expression)


def test_a_plural_behind_a_count_is_found() -> None:
    assert [*counts_with_a_plural('f"{len(found)} records lost, {SOME_MOST} rows, {pluralize(1, x)} groups"')] == [
        "{len(found)} records lost, "
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_count_in_a_message_has_a_fixed_plural(folder: str) -> None:
    found = {
        str(path.relative_to(ROOT)): counts
        for path in (ROOT / folder).rglob("*.py")
        if KAFKAS_WORDS not in path.parents and (counts := [*counts_with_a_plural(path.read_text())])
    }
    assert found == {}
