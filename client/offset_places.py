"""The special timestamps of ListOffsets, which stand for places in a log; all others are times in ms."""

from __future__ import annotations

LATEST = -1
"""The end: the high watermark, or the last stable offset for those who read committed records only."""

EARLIEST = -2
"""The beginning: the log start offset."""
