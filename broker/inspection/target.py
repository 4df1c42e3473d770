"""The subject of `inspect`: a log directory, one of its partitions, or a segment, by whatever path names it.

| path | subject |
|---|---|
| a log directory | all of it |
| the directory of a partition, `…/orders-0` | the partition |
| a file of a segment, `…/orders-0/00000000000000000042.log` or an index | the segment |
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from odradek.broker.storage.names import (
    META_PROPERTIES,
    SEGMENT_SUFFIXES,
    is_log,
    parse_file_name,
    parse_partition_directory,
)


class Target(NamedTuple):
    """The log directory; the name of a partition, None: all; the base offset of a segment, None: all."""

    directory: str
    partition: str | None = None
    segment: int | None = None


class NoSegmentFileError(OSError):
    """The path is a file that belongs to no segment."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is no file of a segment; dump-log prints snapshots, too")


def find_target(path: str) -> Target:
    """Return the subject that a path names. Raises OSError for a path that cannot be read, and for another file."""
    found = Path(path).resolve()
    if found.is_file():
        parsed, partition = parse_file_name(found.name), found.parent
        if parsed is None or parsed[1] not in SEGMENT_SUFFIXES or parse_partition_directory(partition.name) is None:
            raise NoSegmentFileError(path)
        return Target(str(partition.parent), partition.name, parsed[0])
    names = {each.name for each in Path(path).iterdir()}
    if parse_partition_directory(found.name) is not None and is_log(names) and META_PROPERTIES not in names:
        return Target(str(found.parent), found.name)
    return Target(path)
