"""The keys and values of records as the options print them; by default as text (Kafka `StringDecoder`)."""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.inspection.dump.java import utf8_text

RecordText = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]
"""A function of offset, key and value: the texts behind `key: ` and `payload: `, None for those not printed."""


def string_text(_offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    return None if key is None else utf8_text(key), None if value is None else utf8_text(value)


def contents(text: RecordText, prefix: str, offset: int, key: bytes | None, value: bytes | None) -> str:
    """The end of a record's line; `prefix` precedes the first of key and payload."""
    key_text, value_text = text(offset, key, value)
    if key_text is None:
        return "" if value_text is None else f"{prefix}payload: {value_text}"
    if value_text is None:
        return f"{prefix}key: {key_text}"
    return f"{prefix}key: {key_text} payload: {value_text}"
