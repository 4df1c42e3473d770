"""Counts in words."""

from __future__ import annotations

import pytest

from odradek.protocol.plural import pluralize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (pluralize(0, "broker"), "0 brokers"),
        (pluralize(1, "broker"), "1 broker"),
        (pluralize(2, "broker"), "2 brokers"),
        (pluralize(1, "batch", "batches"), "1 batch"),
        (pluralize(3, "batch", "batches"), "3 batches"),
        (pluralize(1, "byte remains", "bytes remain"), "1 byte remains"),
        (pluralize(1000, "record", spec=","), "1,000 records"),
    ],
)
def test_a_count_of_one_is_followed_by_a_singular(text: str, words: str) -> None:
    assert text == words
