"""The names in a log directory, as Kafka writes them.

```
<log.dir>/
  .lock  meta.properties  .kafka_cleanshutdown
  recovery-point-offset-checkpoint  log-start-offset-checkpoint
  replication-offset-checkpoint     cleaner-offset-checkpoint
  <topic>-<partition>/
    partition.metadata  leader-epoch-checkpoint
    00000000000000000000.log        a segment's batches; named after the first offset that the segment may hold
    00000000000000000000.index      offset → position, sparse
    00000000000000000000.timeindex  timestamp → offset, sparse
    00000000000000000000.txnindex   aborted transactions, only where there are any
    00000000000000000042.snapshot   producer state of all records below offset 42
    *.deleted  *.cleaned  *.swap    files of a segment to be removed, being compacted, about to replace others
  <topic>-<partition>.<32 hex digits>-delete/   a deleted partition whose files are not yet removed
  <topic>-<partition>.<32 hex digits>-stray/    a partition of another topic than its name's; kept, but never opened
  worker.<number>/                              the log directory of another process on this machine (not Kafka's)
```

The last one has no dash, so that it is no partition's: Kafka would take `worker-1` for one of a topic `worker`, and set
it aside. It refuses `worker.1`, and starts again when `odradek workers --spread` has emptied it.

Offsets in names have twenty digits, so that names sort as offsets do. A topic may contain dashes: the partition follows
the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
METADATA_REVISION = "odradek-metadata-revision"
METADATA_STORE = "odradek-metadata.sqlite"
"""These two are not Kafka's, which ignores them."""
WORKERS_PLAN = "odradek-workers-plan"
"""Not Kafka's, either: there while `odradek workers --spread` has not finished."""

RAFT_METADATA = "__cluster_metadata"
"""The log of a Kafka controller in the same directory; brokers do not serve it."""

DELETE_DIRECTORY_SUFFIX = "-delete"
STRAY_DIRECTORY_SUFFIX = "-stray"
_MAX_NAME = 255  # bytes in a file name on every file system that matters; topic names are ASCII

_WORKER_DIRECTORY = re.compile(r"worker\.([1-9][0-9]{0,2})")
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})")
_DELETED_DIRECTORY = re.compile(r".+-[0-9]{1,10}\.\S+-delete")
_OFFSET_NAME = re.compile(r"([0-9]{20})(\..+)")


def file_name(offset: int, suffix: str) -> str:
    """The name of the file for the segment (or snapshot) at `offset`, such as `00000000000000000042.log`."""
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    """The offset and the whole suffix (`.log`, `.index.deleted`) of a file's name, or None for another name."""
    match = _OFFSET_NAME.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def is_log(names: Iterable[str]) -> bool:
    """Whether a directory with these files is a partition's: it has a topic id or a segment.

    A segment may still have the suffix of a swap, if the broker was killed before its last rename.
    """
    for name in names:
        parsed = parse_file_name(name)
        if name == PARTITION_METADATA or (parsed is not None and parsed[1] in (LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX)):
            return True
    return False


def is_file_of_log(name: str) -> bool:
    """Whether a file of this name belongs into a partition's directory; temporary files included."""
    return parse_file_name(name) is not None or name.removesuffix(".tmp") in (LEADER_EPOCHS, PARTITION_METADATA)


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """The topic and partition in a directory's name, or None for another name."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match else None


def deleted_directory(topic: str, partition: int, unique: bytes) -> str:
    """The new name of a deleted partition's directory; cuts a long topic, so that the name stays legal."""
    return _retired_directory(topic, partition, unique, DELETE_DIRECTORY_SUFFIX)


def stray_directory(topic: str, partition: int, unique: bytes) -> str:
    """The new name of a stray partition's directory; cuts a long topic likewise."""
    return _retired_directory(topic, partition, unique, STRAY_DIRECTORY_SUFFIX)


def _retired_directory(topic: str, partition: int, unique: bytes, suffix: str) -> str:
    ending = f"-{partition}.{unique.hex()}{suffix}"
    return topic[: _MAX_NAME - len(ending)] + ending


def is_deleted_directory(name: str) -> bool:
    return _DELETED_DIRECTORY.fullmatch(name) is not None


def worker_directory(number: int) -> str:
    """The name of the directory of worker `number`, 1 or more."""
    return f"worker.{number}"


def parse_worker_directory(name: str) -> int | None:
    """The number of the worker of a directory with this name, None for another name."""
    match = _WORKER_DIRECTORY.fullmatch(name)
    return int(match[1]) if match else None
