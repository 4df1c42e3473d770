"""A log directory: the logs of all partitions that a broker keeps in one place (one of `log.dirs`).

```
LogDir(...)          nothing happens
  .open(config_for)  lock, identity (formats an empty directory), marker taken, every partition's log opened
     .logs           {(topic, partition): Log}; create_log, delete_log
     .checkpoint()   recovery points, log start offsets, high watermarks, cleaned offsets: periodically, and at a stop
     .deletions      files to be removed; run_due() periodically
  .close()           every log closed, checkpoints, then the clean-shutdown marker, unlock
```

One process at a time: the process holds the lock, so a killed process releases it. An `OSError` after the opening takes
the directory offline for good (`disk_failure`); then `close` writes nothing, and the next opening recovers. An
`OSError` that does not mean a failed disk (`disk_errors`) fails only the operation at hand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from odradek.broker.clock import Clock
from odradek.broker.randomness import Randomness
from odradek.broker.storage.checkpoints.checkpoints import Checkpoints
from odradek.broker.storage.checkpoints.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from odradek.broker.storage.checkpoints.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from odradek.broker.storage.checkpoints.metadata_revision import (
    ALL_LOGS,
    SeenMetadata,
    read_metadata_revision,
    write_metadata_revision,
)
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.deletions import DeletionJob, Deletions, clear_directory, remove_partition
from odradek.broker.storage.disk.descriptors import DEFAULT_CAPACITY, DescriptorCache
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files, OsFiles, Volume, make_directories
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import (
    LOCK,
    META_PROPERTIES,
    METADATA_REVISION,
    METADATA_STORE,
    RAFT_METADATA,
    deleted_directory,
    is_deleted_directory,
    parse_partition_directory,
    parse_worker_directory,
    partition_directory,
    stray_directory,
)
from odradek.broker.storage.offline.kraft_topics import KraftTopics, read_kraft_topics
from odradek.broker.storage.opening.log_opening import (
    ZERO_TOPIC_ID,
    Checkpointed,
    LogOpener,
    NoLogError,
    Progress,
    create_log,
)
from odradek.broker.storage.opening.recovery import RecoverySummary
from odradek.broker.storage.resources import LogResources, ignore_flush
from odradek.broker.storage.retirement import RetiredLog, retire_logs
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.uuids import uuid_to_text

_LOG = logging.getLogger(__name__)

_CLOSING_THREADS = 8  # closing waits for syncs, and file systems commit those of several threads together

ConfigForTopic = Callable[[str], LogConfig]


class LogDirRefusedError(Exception):
    """The directory is in use, or belongs to another node or cluster."""


class LogDir:
    """One log directory; see the module. The broker sets `broker_epoch`, for the clean-shutdown marker."""

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock,
        randomness: Randomness,
        files: Files | None = None,
        max_open_files: int = DEFAULT_CAPACITY,
        on_failure: Callable[[OSError], None] | None = None,
        on_flush: Callable[[float], None] = ignore_flush,
    ) -> None:
        self.path = Path(path)
        self.logs: dict[Partition, Log] = {}
        self.broker_epoch = -1
        self.meta = MetaProperties(-1, "", "")
        self.was_clean = False
        self.logs_revision = ALL_LOGS  # of `SeenMetadata`, when the directory was opened
        self.last_broker_epoch: int | None = None  # of the clean stop before, None after an unclean one
        self._path = str(path)
        self._descriptors = DescriptorCache(OsFiles() if files is None else files, max_open_files)
        self._files = self._descriptors.retrying_files
        self.failure = DiskFailure(self._path, on_failure, clock)
        self.deletions = Deletions(self._files, clock, self.failure)
        self._checkpoints = Checkpoints(self._files, self._path, self.logs)
        self.resources = LogResources(
            self._descriptors, clock, randomness, self.deletions, self.failure, on_flush, self._checkpoints.lower
        )
        self._lock: int | None = None

    # ---------------------------------------------------------------------------------------------------------- opening

    def open(
        self,
        config_for: ConfigForTopic,
        *,
        node_id: int,
        cluster_id: str | None = None,
        keeps_gaps: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Lock the directory and open every log in it. Blocks; after an unclean stop, for as long as recovery takes.

        `config_for` returns a topic's configuration, `keeps_gaps`: see `LogOpener`. An empty directory is formatted,
        with `cluster_id` or a new one.
        Afterwards `meta` has the ids. Raises `LogDirRefusedError`, `MalformedFileError` for a damaged identity, and
        `OSError`; then the directory is not locked.
        """
        try:
            make_directories(self._files, self._path)
            self._take_lock()
        except NotADirectoryError as error:
            reason = "log.dirs must name directories, and this is a file or lies below one"
            raise NotADirectoryError(error.errno, reason, self._path) from error
        try:
            self._identify(node_id, cluster_id)
            self.last_broker_epoch = take_clean_shutdown(self._files, self._path)
            self.was_clean = self.last_broker_epoch is not None
            self.logs_revision = self.seen_metadata().logs_revision
            self._open_logs(config_for, keeps_gaps, progress)
        except BaseException:
            self._release()
            raise

    def was_ours(self) -> bool:
        """Whether a broker of Odradek has used the directory, which need not be open, as its first."""
        return any(self._files.exists(f"{self._path}/{name}") for name in (METADATA_STORE, METADATA_REVISION))

    def stored_cluster_id(self) -> str | None:
        """The id of the cluster in a directory that is not open, None if it is new or does not exist.

        Raises `LogDirRefusedError` for partitions without an identity, `MalformedFileError`, `OSError`.
        """
        meta = read_meta_properties(self._files, self._path)
        if meta is not None:
            return meta.cluster_id
        try:
            entries = self._files.scan(self._path)
        except FileNotFoundError:
            return None
        if any(entry.is_directory and parse_partition_directory(entry.name) for entry in entries):
            raise LogDirRefusedError(f"log directory {self._path} has partitions, but no {META_PROPERTIES}")
        return None

    def seen_metadata(self) -> SeenMetadata:
        """What was last seen of the metadata store; the directory need not be open.

        Raises `MalformedFileError`, `OSError`.
        """
        return read_metadata_revision(self._files, self._path)

    def store_seen_metadata(self, seen: SeenMetadata) -> None:
        """Replace it, durably. Raises `KafkaError` KAFKA_STORAGE_ERROR, which may be transient."""
        self.failure.check()
        try:
            write_metadata_revision(self._files, self._path, seen)
        except OSError as error:
            raise self.failure.fail("writing the revision of the metadata", error) from error

    def sync_identities(self) -> None:
        """Sync the names and topic ids of all logs. Raises `KafkaError` KAFKA_STORAGE_ERROR, which may be transient."""
        self.failure.check()
        for log in tuple(self.logs.values()):
            log.sync_identity()

    def _take_lock(self) -> None:
        try:
            self._lock = self._files.lock(f"{self._path}/{LOCK}")
        except BlockingIOError:
            raise LogDirRefusedError(f"another broker is using the log directory {self._path}") from None

    def _identify(self, node_id: int, cluster_id: str | None) -> None:
        meta = read_meta_properties(self._files, self._path)
        if meta is None:
            new_id = uuid_to_text(self.resources.randomness.uuid())
            meta = MetaProperties(node_id, cluster_id or uuid_to_text(self.resources.randomness.uuid()), new_id)
            write_meta_properties(self._files, self._path, meta)
        if meta.node_id != node_id:
            raise LogDirRefusedError(f"log directory {self._path} is of node {meta.node_id}, this is node {node_id}")
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise LogDirRefusedError(
                f"log directory {self._path} is of cluster {meta.cluster_id}, this is cluster {cluster_id}"
            )
        self.meta = meta

    def _open_logs(self, config_for: ConfigForTopic, keeps_gaps: bool, progress: Progress | None) -> None:
        checkpoints = self._checkpoints
        recovery_points, log_start_offsets = checkpoints.recovery_points.read(), checkpoints.log_start_offsets.read()
        high_watermarks, cleaned_offsets = checkpoints.high_watermarks.read(), checkpoints.cleaned_offsets.read()
        recovery = RecoverySummary()
        for entry in sorted(self._files.scan(self._path)):
            if not entry.is_directory or parse_worker_directory(entry.name) is not None:
                continue
            directory, key = f"{self._path}/{entry.name}", parse_partition_directory(entry.name)
            if is_deleted_directory(entry.name):
                self._remove_deleted(directory)
            elif key is None or key[0] == RAFT_METADATA:
                _LOG.warning("leaving %s alone, it is no partition's directory", directory)
            elif key in self.logs:  # names such as t-0 and t-00, which Kafka rejects, too
                raise LogDirRefusedError(
                    f"{self.logs[key].directory} and {directory} are both partition {key[1]} of topic {key[0]}: "
                    "move one of them away"
                )
            else:
                opener = LogOpener(
                    directory,
                    *key,
                    config_for(key[0]),
                    self.resources,
                    Checkpointed(recovery_points.get(key), log_start_offsets.get(key), cleaned_offsets.get(key)),
                    is_clean=self.was_clean,
                    keeps_gaps=keeps_gaps,
                    progress=progress,
                )
                try:
                    log = opener.open()
                except NoLogError:
                    _LOG.warning("leaving %s alone, it has no segment", directory)
                    continue
                log.advance_high_watermark(high_watermarks.get(key, log.log_start_offset))
                self.logs[key] = log
                recovery.add(opener.recovery)
        if not self.was_clean:
            checkpoints.write_all()  # before an append: the recovery may have lowered what the rows say
        if recovery.logs:
            _LOG.info("%s was not closed cleanly, %s", self._path, recovery)

    def _remove_deleted(self, directory: str) -> None:
        _LOG.info("removing %s, a deleted partition", directory)
        try:
            remove_partition(self._files, directory)
        except OSError as error:
            _LOG.warning("%s, a deleted partition, cannot be removed: %s", directory, error)

    def kraft_topics(self) -> KraftTopics | None:
        """The topics in the log of Kafka's controller; None if that is not in this directory."""
        return read_kraft_topics(self._files, self._path)

    # ------------------------------------------------------------------------------------------------------- partitions

    def create_log(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> Log:
        """Create the log of a new partition, or return the existing one if its topic id is the same, or lost.

        Raises INCONSISTENT_TOPIC_ID for a log of an older topic of that name, which must be deleted first, and
        KAFKA_STORAGE_ERROR if the directory exists and holds other files, which would be removed with the topic.
        """
        self.failure.check()
        existing = self.logs.get((topic, partition))
        if existing is not None:
            if existing.topic_id == ZERO_TOPIC_ID:
                existing.adopt(topic_id)
            if existing.topic_id != topic_id:
                raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{existing} is of another topic of the same name")
            return existing
        directory = f"{self._path}/{partition_directory(topic, partition)}"
        try:
            clear_directory(self._files, directory)
            self._checkpoints.drop([(topic, partition)])  # those of an older log of this name
            log = create_log(directory, topic, partition, topic_id, config, self.resources)
        except OSError as error:
            raise self.failure.fail(f"creating {directory}", error) from error
        self.logs[topic, partition] = log
        return log

    def open_log(self, topic: str, partition: int, config: LogConfig, checkpointed: Checkpointed) -> Log:
        """Open the log of a directory that was put here since the opening, as after a clean stop. Raises `OSError`."""
        directory = f"{self._path}/{partition_directory(topic, partition)}"
        opener = LogOpener(directory, topic, partition, config, self.resources, checkpointed, is_clean=True)
        self._checkpoints.drop([(topic, partition)])
        log = self.logs[topic, partition] = opener.open()
        return log

    def delete_log(self, topic: str, partition: int) -> DeletionJob:
        """Remove the log of one partition at once; see `delete_logs`. Raises `KafkaError`."""
        (job,) = self.delete_logs([(topic, partition)])
        if isinstance(job, KafkaError):
            raise job
        return job

    def delete_logs(self, partitions: Iterable[Partition]) -> list[DeletionJob | KafkaError]:
        """Remove logs at once; `deletions.run_due` removes their files after `file.delete.delay.ms`.

        Return for each the removal of its files, or its error, and raise, as `retire_logs` does.
        """
        return [
            each
            if isinstance(each, KafkaError)
            else self.deletions.add(each.log.config.file_delete_delay_ms, directories=(each.path,))
            for each in self._retire_logs(partitions, deleted_directory)
        ]

    def set_log_aside(self, topic: str, partition: int) -> None:
        """Close a stray partition's log and rename its directory, which is kept but never opened again.

        Raises the errors of `retire_logs`.
        """
        (retired,) = self._retire_logs([(topic, partition)], stray_directory)
        if isinstance(retired, KafkaError):
            raise retired
        log, target = retired
        _LOG.warning("%s is not a log of this broker's partitions: renamed to %s", log.directory, target)

    def _retire_logs(
        self, partitions: Iterable[Partition], new_name: Callable[[str, int, bytes], str]
    ) -> list[RetiredLog | KafkaError]:
        def new_path(partition: Partition) -> str:
            return f"{self._path}/{new_name(*partition, self.resources.randomness.uuid())}"

        return retire_logs(self.logs, partitions, new_path, self._checkpoints.drop, self._files, self.failure)

    def volume(self) -> Volume:
        """The file system of the directory. Blocks. Raises KAFKA_STORAGE_ERROR."""
        self.failure.check()
        try:
            return self._files.volume(self._path)
        except OSError as error:
            raise self.failure.fail(f"reading the size of {self._path}", error) from error

    # ------------------------------------------------------------------------------------------------------ checkpoints

    def checkpoint_recovery_points(self) -> None:
        self._write(self._checkpoints.write_recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        self._write(self._checkpoints.write_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._write(self._checkpoints.write_high_watermarks)

    def checkpoint_cleaned_offsets(self) -> None:
        self._write(self._checkpoints.write_cleaned_offsets)

    def checkpoint(self) -> None:
        """Write all of them."""
        self._write(self._checkpoints.write_all)

    def _write(self, write: Callable[[], None]) -> None:
        self.failure.check()
        try:
            write()
        except OSError as error:
            raise self.failure.fail("writing a checkpoint", error) from error

    # ---------------------------------------------------------------------------------------------------------- closing

    def close(self, *, clean: bool = True) -> None:
        """Close the logs and unlock the directory. A clean close leaves nothing to recover, unless the disk failed."""
        if self._lock is None:
            return
        try:
            if clean and self.failure.error is None:
                with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
                    list(pool.map(Log.close, self.logs.values()))
                self.checkpoint()
                self._mark_clean()
        except KafkaError as error:
            _LOG.error("log directory %s was not closed cleanly: %s", self._path, error)
        finally:
            self._release()

    def _mark_clean(self) -> None:
        try:
            write_clean_shutdown(self._files, self._path, self.broker_epoch)
        except OSError as error:
            raise self.failure.fail("writing the clean-shutdown marker", error) from error

    def _release(self) -> None:
        self.logs.clear()
        self._descriptors.close()
        if self._lock is not None:
            self._files.close(self._lock)
            self._lock = None
