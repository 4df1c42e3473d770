"""What the partitions of a log directory hold, and which part of it a job may read."""

from __future__ import annotations

import argparse
import re
from typing import NamedTuple

from broker.storage import open_log_dir
from broker.storage.compaction import cleanable_part
from broker.storage.log_config import LogConfig
from broker.storage.stored_partition import StoredPartition
from pipeline.jobs import JobError

_READ_COMMITTED = ("isolation.level", "read_committed")


class LogRanges(NamedTuple):
    """By topic and partition: the first offset, and the end (exclusive)."""

    starts: dict[tuple[str, int], int]
    ends: dict[tuple[str, int], int]


def log_ranges(arguments: argparse.Namespace, *, inactive_only: bool = False) -> LogRanges:
    """Of the topics that the flags name in `--log-dir`: all that is there and decided.

    With `inactive_only` the active segments are left out, as the broker's cleaner does, and what an open transaction
    has written. Raises `JobError` if there is no such topic, `OSError` if the directory cannot be read.
    """
    is_committed = _READ_COMMITTED in [(name.removeprefix("kafka."), value) for name, value in arguments.option]
    starts, ends = {}, {}
    with open_log_dir(arguments.log_dir) as log_dir:
        for key, stored in log_dir.partitions.items():
            if not _is_wanted(key[0], arguments):
                continue
            end = stored.last_stable_offset if is_committed else stored.log_end_offset
            if inactive_only:
                end = _first_uncleanable_offset(stored)
            starts[key] = stored.log_start_offset
            ends[key] = max(end, stored.log_start_offset)
    if not starts:
        raise JobError(f"{arguments.log_dir} has no topic {arguments.topic or arguments.topic_pattern}")
    return LogRanges(starts, ends)


def _first_uncleanable_offset(stored: StoredPartition) -> int:
    """Where a round of compaction that is due now would stop, if there is no `min.compaction.lag.ms`."""
    return cleanable_part(
        stored.segments,
        LogConfig(),
        cleaned_offset=None,
        log_start_offset=stored.log_start_offset,
        last_stable_offset=stored.last_stable_offset,
        log_end_offset=stored.log_end_offset,
        now_ms=0,
    ).first_uncleanable_offset


def _is_wanted(topic: str, arguments: argparse.Namespace) -> bool:
    if arguments.topic is not None:
        return topic in arguments.topic.split(",")
    if arguments.topic_pattern is not None:
        return re.fullmatch(arguments.topic_pattern, topic) is not None
    return True
