"""The result of a read for a Fetch."""

from __future__ import annotations

from odradek.broker.storage.log_slice import LogSlice


class FetchedRecords:
    """The result of a read; without records if the fetcher's log diverged, at `diverging_epoch` (epoch, end offset)."""

    __slots__ = ("diverging_epoch", "high_watermark", "last_stable_offset", "log_start_offset", "records")

    def __init__(
        self,
        records: LogSlice | bytes,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        diverging_epoch: tuple[int, int] | None = None,
    ) -> None:
        self.records = records
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
