"""The offsets of the partitions in a log directory, and the range of them that a job reads."""

from __future__ import annotations

import argparse
import re
from functools import partial
from typing import NamedTuple

from odradek.broker.storage.cleanable import cleanable_part
from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.jobs import JobError
from odradek.pipeline.klog.segments import (
    DirectoryChangesError,
    LogDirectory,
    NoLogDirError,
    PartitionLog,
    while_it_changes,
)
from odradek.pipeline.options.bounds import Numbers

_READ_COMMITTED = ("isolation.level", "read_committed")


class LogRanges(NamedTuple):
    """The first offset and the end (exclusive) of each partition."""

    starts: Numbers
    ends: Numbers


def log_ranges(arguments: argparse.Namespace, *, inactive_only: bool = False) -> LogRanges:
    """Return the offsets that `format("klog")` reads of the topics that the flags select in `--log-dir`.

    With `inactive_only` the ranges end where the broker's cleaner stops: before the active segment and before open
    transactions. Raises `JobError` if there is no such topic or directory, `OSError` if it cannot be read.
    """
    is_committed = _READ_COMMITTED in [(name.removeprefix("kafka."), value) for name, value in arguments.option]
    ranges = LogRanges({}, {})
    try:
        directory = LogDirectory(arguments.log_dir)
    except NoLogDirError as error:
        raise JobError(str(error)) from error
    with directory:
        topics = {topic for topic in directory.topics() if _is_selected(topic, arguments)}
        for key in directory.partitions(topics):
            action = partial(_range_of, is_committed=is_committed, inactive_only=inactive_only)
            try:
                found = while_it_changes(partial(directory.read, key, action), key)
            except DirectoryChangesError as error:
                raise JobError(str(error)) from error
            assert found is not None
            ranges.starts[key], ranges.ends[key] = found
    if not ranges.starts:
        raise JobError(f"{arguments.log_dir} has no topic {arguments.topic or arguments.topic_pattern}")
    return ranges


def _range_of(log: PartitionLog, *, is_committed: bool, inactive_only: bool) -> tuple[int, int]:
    end = log.last_stable_offset() if is_committed else log.end_offset
    return log.start_offset, max(_first_uncleanable_offset(log) if inactive_only else end, log.start_offset)


def _first_uncleanable_offset(log: PartitionLog) -> int:
    """Return where the cleaner would stop now, with `min.compaction.lag.ms=0`."""
    return cleanable_part(
        list(log.segments),
        LogConfig(),
        cleaned_offset=None,
        log_start_offset=log.start_offset,
        last_stable_offset=log.last_stable_offset(),
        log_end_offset=log.end_offset,
        now_ms=0,
    ).first_uncleanable_offset


def _is_selected(topic: str, arguments: argparse.Namespace) -> bool:
    if arguments.topic is not None:
        return topic in arguments.topic.split(",")
    return re.fullmatch(arguments.topic_pattern, topic) is not None
