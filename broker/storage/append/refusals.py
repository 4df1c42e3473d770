"""Why a leader refused a batch, where its error code alone does not say it: metrics tell these causes apart.

Raised by `validation`, before anything is appended. Whoever answers the client puts code, detail and the records to
blame into its response.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError


class Cause(Enum):
    """What was found wrong with a batch as a whole."""

    NOT_ONE_BATCH = "there is not exactly one whole batch of a format that the request may carry"
    CHECKSUM = "the checksum is wrong"
    OFFSETS = "offsets, number of records or sequence do not fit together, or a client may not write such a batch"


class RefusedBatchError(KafkaError):
    """A batch was refused for a cause that is counted by itself."""

    def __init__(self, code: ErrorCode, detail: str, cause: Cause) -> None:
        super().__init__(code, detail)
        self.cause = cause


class RecordError(NamedTuple):
    """One record that was refused: its place in the batch, and why (KIP-467)."""

    batch_index: int
    message: str


class InvalidRecordsError(KafkaError):
    """Records of a batch were refused, and the batch with them; `keyless_records` of them for want of a key."""

    def __init__(self, code: ErrorCode, detail: str, record_errors: list[RecordError], keyless_records: int) -> None:
        super().__init__(code, detail)
        self.record_errors = record_errors
        self.keyless_records = keyless_records
