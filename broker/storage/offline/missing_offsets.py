"""Offsets that a log lacks: what explains them, and what does not.

In a log that was never compacted, offsets follow each other without a gap, also across segments; markers of
transactions have offsets, too. Retention and DeleteRecords remove only the beginning of a log. So a gap is either the
work of compaction, or data was lost. A reader that meets a gap looks for evidence, in this order:

| evidence | the gap is |
|---|---|
| the segments are not those that were listed any more | the work of retention or compaction meanwhile: read again |
| in the gap, an index without its log; or the log of the gap is empty, and its index is not | a loss |
| the partition is in `cleaner-offset-checkpoint` | explained |
| files of a recent compaction: `.cleaned`, `.swap`, or `.deleted` in the middle of the log | explained |
| a batch of the segment that contains fewer records than offsets, or has a delete horizon | explained |
| `cleanup.policy` in the metadata log of a Kafka controller in the same directory | explained if it is `compact` |
| none | a loss |

A replica that was copied from a compacted one, but was not compacted itself, and whose batches have one record each,
shows none of it: its gaps count as losses.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError, scan_headers
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.names import (
    CLEANED_SUFFIX,
    CLEANER_OFFSETS,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    parse_file_name,
)
from odradek.broker.storage.offline.kraft_topics import read_kraft_topics
from odradek.broker.storage.offline.listing import PartitionFiles
from odradek.broker.storage.offline.segment_files import status_of, used_bytes

_MOST_HEADERS: Final = 100_000  # of a segment that are searched for the traces of compaction


class MissingOffsets(NamedTuple):
    """Offsets [first, last] that are missing at `position` of the log file at `path`."""

    path: str
    position: int
    first: int
    last: int

    def overlaps(self, start_offset: int, end_offset: int) -> bool:
        return self.first < end_offset and self.last >= start_offset

    @property
    def reason(self) -> str:
        """The sentence about these offsets, if nothing explains that they are missing."""
        offsets = f"offset {self.first} is" if self.first == self.last else f"offsets {self.first} to {self.last} are"
        return f"{offsets} missing, which neither retention nor compaction explains"


class SegmentGoneError(Exception):
    """A segment was removed, or replaced by compaction, after the segments were listed."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was removed by retention or replaced by compaction after this read was planned: read again"
        )


def is_explained(missing: MissingOffsets, topic: str, partition: int) -> bool:
    """Whether compaction explains the gap. Raises SegmentGoneError if the segments are other ones now."""
    directory, file = os.path.split(missing.path)
    log_dir, name = os.path.split(directory)
    files = ReadOnlyFiles()
    base_offset = int(file.partition(".")[0])
    try:
        listed = PartitionFiles(files, log_dir, name, (topic, partition))
    except FileNotFoundError:
        raise SegmentGoneError(missing.path) from None
    between = [base for base in listed.logs if missing.first <= base <= missing.last and base != base_offset]
    if base_offset not in listed.logs or between:
        raise SegmentGoneError(missing.path)
    if _has_index_of_lost(files, listed, missing, base_offset):
        return False
    return (
        (topic, partition) in OffsetCheckpoint(files, log_dir, CLEANER_OFFSETS).read()
        or _is_being_compacted(listed)
        or _was_compacted(missing.path)
        or _is_compacted_topic(files, log_dir, topic)
    )


def _has_index_of_lost(files: ReadOnlyFiles, listed: PartitionFiles, missing: MissingOffsets, base_offset: int) -> bool:
    for base, sizes in listed.segments.items():
        if missing.first <= base <= missing.last and not sizes.get(LOG_SUFFIX):
            if LOG_SUFFIX not in sizes and base != base_offset:
                return True
            for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                path = listed.path_of(base, suffix)
                if sizes.get(suffix) and used_bytes(files, path, suffix, sizes[suffix]):
                    return True
    return False


def _is_being_compacted(listed: PartitionFiles) -> bool:
    for name in listed.sizes:
        if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)):
            return True
        if name.endswith(LOG_SUFFIX + DELETED_SUFFIX):  # retention removes only segments before the first one
            parsed = parse_file_name(name)
            if parsed is not None and parsed[0] >= listed.logs[0]:
                return True
    return False


def _was_compacted(path: str) -> bool:
    descriptors = DescriptorCache(ReadOnlyFiles())
    try:
        headers = scan_headers(descriptors, path, 0, status_of(path).st_size)
        for _, (_, header) in zip(range(_MOST_HEADERS), headers, strict=False):
            if header.has_delete_horizon or header.records_count < header.last_offset - header.base_offset + 1:
                return True
    except (CorruptBatchError, OSError):
        pass
    finally:
        descriptors.close()
    return False


def _is_compacted_topic(files: ReadOnlyFiles, log_dir: str, topic: str) -> bool:
    try:
        topics = read_kraft_topics(files, log_dir)
    except OSError:
        return False
    return topics is not None and "compact" in topics.configs.get(topic, {}).get("cleanup.policy", "")
