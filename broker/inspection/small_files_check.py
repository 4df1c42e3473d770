"""The checks of the small files of a log directory: their form, and whether they agree with the logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from odradek.broker.inspection.problem import Problem, Report
from odradek.broker.inspection.segments_outcome import EpochRun
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.checkpoints.meta_properties import read_meta_properties
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.checkpoints.partition_metadata import read_topic_id
from odradek.broker.storage.checkpoints.text_file import MalformedFileError, parse_rows
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.names import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    SNAPSHOT_SUFFIX,
    file_name,
)
from odradek.broker.storage.producers.producer_snapshots import CorruptSnapshotError, decode_snapshot

_CHECKPOINTS = {
    RECOVERY_POINTS: "is synced up to",
    LOG_START_OFFSETS: "starts at",
    HIGH_WATERMARKS: "is replicated up to",
    CLEANER_OFFSETS: "is compacted up to",
}


def check_directory_files(files: Files, directory: str, ends: Mapping[Partition, int], report: Report) -> None:
    """Check the files beside the partitions' directories; `ends` are the log end offsets that were found."""
    present = {entry.name for entry in files.scan(directory) if not entry.is_directory}
    if META_PROPERTIES in present:
        try:
            read_meta_properties(files, directory)
        except MalformedFileError as error:
            report(Problem(META_PROPERTIES, str(error)))
    for name, verb in _CHECKPOINTS.items():
        if name in present:
            _check_offsets(files, directory, name, verb, ends, report)


def _check_offsets(
    files: Files, directory: str, name: str, verb: str, ends: Mapping[Partition, int], report: Report
) -> None:
    try:
        rows = parse_rows(files.read(f"{directory}/{name}"), columns=3)
    except MalformedFileError as error:
        report(Problem(name, str(error)))
        return
    for topic, partition, offset in rows:
        end = ends.get((topic, int(partition)))
        if end is not None and int(offset) > end:
            report(Problem(name, f"{topic}-{partition} {verb} {offset}, and its log ends at {end}", offset=int(offset)))


def check_topic_id(files: Files, directory: str, shown_as: str, report: Report) -> None:
    try:
        read_topic_id(files, directory)
    except (MalformedFileError, FileNotFoundError) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else str(error)
        report(Problem(f"{shown_as}/{PARTITION_METADATA}", problem))


def check_snapshots(
    files: Files, directory: str, shown_as: str, offsets: Iterable[int], log_end_offset: int, report: Report
) -> None:
    for offset in offsets:
        name = file_name(offset, SNAPSHOT_SUFFIX)
        try:
            decode_snapshot(files.read(f"{directory}/{name}"))
        except CorruptSnapshotError as error:
            report(Problem(f"{shown_as}/{name}", str(error)))
        if offset > log_end_offset:
            report(Problem(f"{shown_as}/{name}", f"is of an offset behind the log, which ends at {log_end_offset}"))


def check_leader_epochs(
    files: Files, directory: str, shown_as: str, runs: Sequence[EpochRun], log_start_offset: int, report: Report
) -> None:
    """Check in both directions: batches from `log_start_offset` on have the epoch of the file, and vice versa.

    Batches before the first entry are ignored: the start of the log was moved there, or is about to be.
    """
    path = f"{shown_as}/{LEADER_EPOCHS}"
    epochs = LeaderEpochs(files, f"{directory}/{LEADER_EPOCHS}")
    try:
        epochs.load()
    except FileNotFoundError:
        pass  # a log without batches may have no file; otherwise each epoch is reported as missing
    except MalformedFileError as error:
        report(Problem(path, str(error)))
        return
    start_offset = max(log_start_offset, epochs.entries[0].start_offset if epochs.entries else 0)
    for run in runs:
        if run.epoch < 0 or run.end_offset <= start_offset:
            continue
        places = {max(run.start_offset, start_offset)}
        places |= {
            each.start_offset for each in epochs.entries if run.start_offset < each.start_offset < run.end_offset
        }
        for offset in sorted(places):
            known = epochs.epoch_for(offset)
            if known != run.epoch:
                report(Problem(path, f"has epoch {known}, where the batch has {run.epoch}", offset=offset))
