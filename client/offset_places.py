"""What stands for places in a request for offsets, where others are times in ms (ListOffsets)."""

from __future__ import annotations

LATEST = -1
"""The end: the high watermark, or the last stable offset for those who read committed records only."""

EARLIEST = -2
"""The beginning: the log start offset."""
