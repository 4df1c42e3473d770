"""A log directory that no broker serves, opened as a broker opens it: a copy, a backup, one of Apache Kafka.

```python
with open_log_dir("/var/lib/kafka") as log_dir:
    for (topic, partition), stored in log_dir.partitions.items():
        print(topic, partition, stored.log_start_offset, stored.log_end_offset)
    for record in log_dir.partitions["orders", 0].records(start_offset=1000):
        ...
    log_dir.committed_offsets()["billing"]
```

By default it is opened for reading: no file changes, nothing is locked, and what a broker would repair at its start (a
torn end, missing or wrong indexes, an interrupted compaction) is repaired in memory: `read_only_files`. So this may
also open the directory of a running broker, as it is at that moment, as long as the broker does not remove files that
are being read.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from odradek.broker.clock import SystemClock
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.checkpoints.meta_properties import MetaProperties, read_meta_properties
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.log_config import NO_LIMIT, LogConfig
from odradek.broker.storage.log_dir import LogDir, LogDirRefusedError
from odradek.broker.storage.names import META_PROPERTIES
from odradek.broker.storage.offline.committed_offsets import CommittedOffset, read_committed_offsets
from odradek.broker.storage.offline.stored_partition import StoredPartition
from odradek.broker.storage.opening.log_opening import Progress

_EVERYTHING = LogConfig(producer_id_expiration_ms=NO_LIMIT)  # also producers that a broker would have removed by now
_CONSUMER_OFFSETS = "__consumer_offsets"
_NO_NODE = -1


class StoredLogDir:
    """An open log directory with its `partitions`; `was_clean`: its broker stopped cleanly.

    `meta` is None if the directory has no identity. Must be closed; used by one thread.
    """

    def __init__(self, log_dir: LogDir, meta: MetaProperties | None) -> None:
        self.path = log_dir.path
        self.meta = meta
        self.was_clean = log_dir.was_clean
        self.partitions: dict[Partition, StoredPartition] = {
            key: StoredPartition(log) for key, log in sorted(log_dir.logs.items())
        }
        self._log_dir = log_dir

    def topics(self) -> dict[str, list[StoredPartition]]:
        """The partitions by topic, in order."""
        found: dict[str, list[StoredPartition]] = {}
        for (topic, _), partition in self.partitions.items():
            found.setdefault(topic, []).append(partition)
        return found

    def committed_offsets(self) -> dict[str, dict[Partition, CommittedOffset]]:
        """The offsets in `__consumer_offsets`, by group, topic and partition, without undecided transactions.

        Raises KafkaError CORRUPT_MESSAGE for a log that cannot be read.
        """
        return read_committed_offsets(self.topics().get(_CONSUMER_OFFSETS, []))

    def close(self) -> None:
        """Close the files. A directory that was opened for writing is left as by a clean stop."""
        self._log_dir.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_log_dir(path: str | Path, *, read_only: bool = True, progress: Progress | None = None) -> StoredLogDir:
    """Open the log directory at `path`; after an unclean stop this takes as long as recovery does.

    With `read_only` false, takes the lock and repairs the files on the disk, as at the start of a broker. Raises
    `OSError` if it cannot be read, `MalformedFileError` for a damaged `meta.properties`, and, for writing,
    `LogDirRefusedError` for one that is in use or has no identity.
    """
    meta = read_meta_properties(OsFiles(), str(path))
    if meta is None and not read_only:
        raise LogDirRefusedError(f"{path} has no {META_PROPERTIES}, so it is no broker's log directory")
    files = ReadOnlyFiles() if read_only else OsFiles()
    files.scan(str(path))  # raises for a missing directory, which opening would create
    log_dir = LogDir(path, clock=SystemClock(), randomness=SystemRandomness(), files=files)
    node_id = _NO_NODE if meta is None else meta.node_id
    log_dir.open(lambda _: _EVERYTHING, node_id=node_id, keeps_gaps=not log_dir.was_ours(), progress=progress)
    for log in log_dir.logs.values():
        log.advance_high_watermark(log.log_end_offset)
    return StoredLogDir(log_dir, meta)
