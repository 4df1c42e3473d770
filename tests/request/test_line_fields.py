from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.request.line_fields import few


def test_few_texts_are_named_and_no_others_are_made() -> None:
    made = []

    def texts() -> Iterator[str]:
        for number in range(1000):
            made.append(number)
            yield f"t{number}"

    assert few(1000, texts()) == ", ".join(f"t{number}" for number in range(10)) + " and 990 more"
    assert len(made) == 10


def test_all_are_named_if_they_are_few() -> None:
    assert few(2, ["a", "b" * 300], separator=" ") == "a " + "b" * 256 + "…"
    assert few(0, []) == ""
