"""Damaged batches: Spark's three modes of handling them, and the text that describes the damage.

| mode | a damaged batch becomes |
|---|---|
| FAILFAST | an error |
| PERMISSIVE | a row with the text in `_corrupt_record`, and with the values of other columns that are known |
| DROPMALFORMED | nothing |
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize


class Mode(StrEnum):
    """Spark's option `mode`; the connector does not have it. The default is FAILFAST."""

    FAILFAST = "FAILFAST"
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"


class Damage(NamedTuple):
    """`size` bytes at `position` of `source` that cannot be decoded; `offset`: the base offset in them, if any."""

    source: str
    position: int
    size: int
    offset: int | None
    reason: str

    def __str__(self) -> str:
        base_offset = "" if self.offset is None else f", base offset {self.offset}"
        return f"{self.source} at position {self.position} ({pluralize(self.size, 'byte')}{base_offset}): {self.reason}"


class CorruptRecordsError(KafkaError):
    """Records that cannot be decoded, under FAILFAST."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, str(damage))
        self.damage = damage
