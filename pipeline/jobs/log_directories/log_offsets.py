"""The offsets of the partitions in a log directory that a job reads, and the identity of their logs."""

from __future__ import annotations

import argparse
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from odradek.broker.storage.checkpoints.leader_epochs import EpochStart, LeaderEpochs
from odradek.broker.storage.checkpoints.meta_properties import read_meta_properties
from odradek.broker.storage.checkpoints.partition_metadata import read_topic_id
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.cleanable import cleanable_part
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import LEADER_EPOCHS
from odradek.client.config import IsolationLevel
from odradek.client.record import TopicPartition
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.source import source_options
from odradek.pipeline.klog.options import klog_options
from odradek.pipeline.klog.plan import OffsetRangeError, subscribed
from odradek.pipeline.klog.segments import (
    DirectoryChangesError,
    LogDirectory,
    NoLogDirError,
    PartitionLog,
    while_it_changes,
)
from odradek.pipeline.options.bounds import Numbers
from odradek.protocol.uuids import uuid_to_text


class LogState(NamedTuple):
    """The logs of a directory at one moment.

    `starts`, `ends`: the first offset and the end (exclusive) that a job reads of each partition. `stored_ends`: the
    offset behind the last whole batch, which is higher while a broker is writing. `topic_ids` and `cluster_id` are
    missing where the directory does not have them.
    """

    starts: Numbers
    ends: Numbers
    stored_ends: Numbers
    epochs: dict[TopicPartition, list[EpochStart]]
    topic_ids: dict[str, str]
    cluster_id: str | None


def read_log_state(arguments: argparse.Namespace, *, inactive_only: bool = False) -> LogState:
    """Return the state of the partitions that the flags select in `--log-dir`.

    With `inactive_only` the ranges end where the broker's cleaner stops: before the active segment and before open
    transactions. Raises `JobError` if there is no such topic or directory, `OSError` if it cannot be read.
    """
    options = klog_options(source_options(arguments) | {"path": arguments.log_dir})
    state = LogState({}, {}, {}, {}, {}, _cluster_id(options.path))
    action = partial(_add, state, isolation_level=options.isolation_level, inactive_only=inactive_only)
    try:
        with LogDirectory(options.path) as directory:
            for key in subscribed(directory, options):
                while_it_changes(partial(directory.read, key, action), key)
    except (NoLogDirError, OffsetRangeError, DirectoryChangesError) as error:
        raise JobError(str(error)) from error
    if not state.starts:
        raise JobError(f"{arguments.log_dir} has no topic {arguments.topic or arguments.topic_pattern}")
    return state


def _add(state: LogState, log: PartitionLog, *, isolation_level: IsolationLevel, inactive_only: bool) -> None:
    end = log.last_stable_offset() if isolation_level == "read_committed" else log.end_offset
    end = _first_uncleanable_offset(log) if inactive_only else end
    files, key = ReadOnlyFiles(), TopicPartition(*log.partition)
    epochs = LeaderEpochs(files, f"{log.directory}/{LEADER_EPOCHS}")
    with suppress(FileNotFoundError, MalformedFileError):
        epochs.load()
    with suppress(FileNotFoundError, MalformedFileError):
        state.topic_ids[key.topic] = uuid_to_text(read_topic_id(files, log.directory))
    state.starts[key], state.ends[key] = log.start_offset, max(end, log.start_offset)
    state.stored_ends[key] = max(log.last_end, log.start_offset)
    state.epochs[key] = epochs.entries


def _cluster_id(directory: str) -> str | None:
    try:
        meta = read_meta_properties(ReadOnlyFiles(), directory)
    except MalformedFileError as error:
        raise JobError(str(error)) from error
    return None if meta is None else meta.cluster_id


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
