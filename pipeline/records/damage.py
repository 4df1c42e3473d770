"""What a reader does where bytes are no records: Spark's three modes, and the sentence that says which bytes.

| mode | a damaged batch is |
|---|---|
| FAILFAST | an error |
| PERMISSIVE | a row that has the sentence in `_corrupt_record`, and of the other columns what is known |
| DROPMALFORMED | left out |
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize


class Mode(StrEnum):
    """Spark's option `mode`. The connector knows none; the default here is FAILFAST."""

    FAILFAST = "FAILFAST"
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"


class Damage(NamedTuple):
    """`size` bytes at `position` of `source` that are no records, for a reason; `offset`: what they claim."""

    source: str
    position: int
    size: int
    offset: int | None
    reason: str

    def __str__(self) -> str:
        claim = "" if self.offset is None else f", base offset {self.offset}"
        return f"{self.source} at position {self.position} ({pluralize(self.size, 'byte')}{claim}): {self.reason}"


class CorruptRecordsError(KafkaError):
    """Records that cannot be read, under FAILFAST."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, str(damage))
        self.damage = damage
