"""What the partitions of a log directory hold, and which part of it a job may read."""

from __future__ import annotations

import argparse
import re
from typing import NamedTuple

from odradek.broker.storage.cleanable import cleanable_part
from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.jobs import JobError
from odradek.pipeline.klog.segments import LogDirectory, NoLogDirError, PartitionLog
from odradek.pipeline.options.bounds import Numbers

_READ_COMMITTED = ("isolation.level", "read_committed")


class LogRanges(NamedTuple):
    """By topic and partition: the first offset, and the end (exclusive)."""

    starts: Numbers
    ends: Numbers


def log_ranges(arguments: argparse.Namespace, *, inactive_only: bool = False) -> LogRanges:
    """Of the topics that the flags name in `--log-dir`: all that `format("klog")` would read.

    With `inactive_only` the active segments are left out, as the broker's cleaner does, and what an open transaction
    has written. Raises `JobError` if there is no such topic or directory, `OSError` if it cannot be read.
    """
    is_committed = _READ_COMMITTED in [(name.removeprefix("kafka."), value) for name, value in arguments.option]
    ranges = LogRanges({}, {})
    try:
        directory = LogDirectory(arguments.log_dir)
    except NoLogDirError as error:
        raise JobError(str(error)) from error
    for key in directory.partitions:
        if _is_wanted(key.topic, arguments):
            log = directory.open(key)
            end = log.last_stable_offset() if is_committed else log.end_offset
            ranges.starts[key] = log.start_offset
            ranges.ends[key] = max(_first_uncleanable_offset(log) if inactive_only else end, log.start_offset)
    if not ranges.starts:
        raise JobError(f"{arguments.log_dir} has no topic {arguments.topic or arguments.topic_pattern}")
    return ranges


def _first_uncleanable_offset(log: PartitionLog) -> int:
    """Where a round of compaction that is due now would stop, if there is no `min.compaction.lag.ms`."""
    return cleanable_part(
        list(log.segments),
        LogConfig(),
        cleaned_offset=None,
        log_start_offset=log.start_offset,
        last_stable_offset=log.last_stable_offset(),
        log_end_offset=log.end_offset,
        now_ms=0,
    ).first_uncleanable_offset


def _is_wanted(topic: str, arguments: argparse.Namespace) -> bool:
    if arguments.topic is not None:
        return topic in arguments.topic.split(",")
    return re.fullmatch(arguments.topic_pattern, topic) is not None
