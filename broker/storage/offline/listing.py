"""The partitions in a log directory and the files of each, without opening a log.

| in the directory | counts as |
|---|---|
| `<topic>-<partition>` with a topic id or a segment | a partition, as for a broker (`names.is_log`) |
| the same of `__cluster_metadata`, `…-delete`, any other name | no partition |

| in a partition | counts as |
|---|---|
| `.cleaned`, `.deleted`, a `.swap` that is not complete | no file of the log |
| a `.swap` that is complete | a segment, in place of those that it covers |
| an index whose `.log` is missing | a segment without `.log`, for `verify` |

Compaction that is being swapped in, or that was interrupted, is so seen as finished or as not begun: the rules are
those of a start (`opening.leftovers`). Nothing is changed. A partition that is removed meanwhile is left out.
"""

from __future__ import annotations

import errno

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.names import (
    LOG_SUFFIX,
    META_PROPERTIES,
    RAFT_METADATA,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    file_name,
    is_deleted_directory,
    is_log,
    parse_file_name,
    parse_partition_directory,
)
from odradek.broker.storage.opening.leftovers import Leftovers, find_leftovers, has_leftovers


class NoLogDirError(FileNotFoundError):
    """The directory holds nothing of a broker: mostly it is a partition's, or the one above."""

    def __init__(self, path: str) -> None:
        reason = f"no log directory, it has neither {META_PROPERTIES} nor a partition"
        super().__init__(errno.ENOENT, reason, path)


class PartitionFiles:
    """The files of one partition: `segments` by base offset, with sizes by suffix; the offsets of `snapshots`.

    `sizes` has every file in the directory by name. `name` is that of the directory.
    """

    def __init__(self, files: Files, log_dir: str, name: str, key: Partition) -> None:
        self.name = name
        self.key = key
        self.path = f"{log_dir}/{name}"
        self.sizes = {entry.name: entry.size for entry in sorted(files.scan(self.path)) if not entry.is_directory}
        self.is_log = is_log(self.sizes)
        self.segments: dict[int, dict[str, int]] = {}
        self.snapshots: list[int] = []
        self._swapped: set[int] = set()
        left = self._leftovers(files)
        gone = {*left.removed, *left.covered}
        for file, size in self.sizes.items():
            parsed = None if file in gone else parse_file_name(file)
            if parsed is None:
                continue
            offset, suffix = parsed
            if file in left.swapped:
                suffix = suffix.removesuffix(SWAP_SUFFIX)
                self._swapped.add(offset)
            if suffix in SEGMENT_SUFFIXES:
                self.segments.setdefault(offset, {})[suffix] = size
            elif suffix == SNAPSHOT_SUFFIX:
                self.snapshots.append(offset)

    @property
    def size(self) -> int:
        """The bytes of all `.log` files."""
        return sum(sizes.get(LOG_SUFFIX, 0) for sizes in self.segments.values())

    @property
    def logs(self) -> list[int]:
        """The base offsets of the segments that have a `.log`, ascending."""
        return sorted(base_offset for base_offset, sizes in self.segments.items() if LOG_SUFFIX in sizes)

    def ending(self, base_offset: int) -> str:
        """The end of the names of a segment's files: none, or `.swap` for one that is being swapped in."""
        return SWAP_SUFFIX if base_offset in self._swapped else ""

    def path_of(self, base_offset: int, suffix: str) -> str:
        """The path of a segment's file."""
        return f"{self.path}/{file_name(base_offset, suffix)}{self.ending(base_offset)}"

    def _leftovers(self, files: Files) -> Leftovers:
        if not has_leftovers(self.sizes):
            return Leftovers([], [], [])
        descriptors = DescriptorCache(files)
        try:
            return find_leftovers(descriptors, self.path, self.sizes)
        except CorruptBatchError:  # a swap that cannot replace anything
            return Leftovers([name for name in self.sizes if has_leftovers([name])], [], [])
        finally:
            descriptors.close()


def list_partitions(files: Files, log_dir: str) -> list[PartitionFiles]:
    """The partitions in the log directory, by the name of their directories.

    Raises `OSError` if it cannot be read, and `NoLogDirError` if it is no log directory.
    """
    found = []
    for name, key in partition_names(files, log_dir):
        try:
            partition = PartitionFiles(files, log_dir, name, key)
        except FileNotFoundError:
            continue
        if partition.is_log:
            found.append(partition)
    if not found and not files.exists(f"{log_dir}/{META_PROPERTIES}"):
        raise NoLogDirError(log_dir)
    return found


def partition_names(files: Files, log_dir: str) -> list[tuple[str, Partition]]:
    """The directories with the name of a partition, which they may not contain, in order. Raises `OSError`."""
    keys = [(entry.name, _key_of(entry.name)) for entry in sorted(files.scan(log_dir)) if entry.is_directory]
    return [(name, key) for name, key in keys if key is not None]


def _key_of(name: str) -> Partition | None:
    key = parse_partition_directory(name)
    return None if key is None or key[0] == RAFT_METADATA or is_deleted_directory(name) else key
