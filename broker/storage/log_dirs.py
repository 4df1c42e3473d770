"""All log directories of a broker (`log.dirs`), each perhaps on a disk of its own (JBOD).

A partition's log is in one of them. A new log goes to the directory with the fewest (Kafka's `LogManager.nextLogDirs`).
Each directory has its own lock, id, checkpoints and clean-shutdown marker, and fails alone: its logs are unavailable
until the next start (`disk_failure`), the others stay in use.

| a directory that cannot be opened, or fails later | then |
|---|---|
| the first, which also holds the metadata | the broker does not start, or ends, as Kafka without `metadata.log.dir` |
| another | it is `offline`; a log that is not found elsewhere may be there, so it must not be created again |

A topic may be deleted and made again while a directory is offline; when that is back, two directories have a log of
one name. Topic ids decide: both are opened, one as the log of the name, the others as its namesakes. When the metadata
are there, `find` makes the log of the living topic that of the name, and `retire_namesakes` removes the others. (Kafka
decides while it loads logs, because it has the metadata before.) For two logs of one id the broker does not start.

The thread that creates or deletes a log changes `logs`; readers copy it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Sequence
from threading import Lock

from odradek.broker.storage.checkpoints.metadata_revision import ALL_LOGS, SeenMetadata
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.deletions import DeletionJob
from odradek.broker.storage.disk.disk_errors import TransientDiskError, is_transient
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import ConfigForTopic, LogDir, LogDirRefusedError
from odradek.broker.storage.offline.kraft_topics import KraftTopics
from odradek.broker.storage.opening.log_opening import Checkpointed, Progress
from odradek.broker.storage.producers.producer_state import NO_PRODUCER_ID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.uuids import uuid_to_text

_LOG = logging.getLogger(__name__)


class LogDirs:
    """The directories; see the module. `directories` has the order of the configuration, with the failed ones."""

    def __init__(self, directories: Sequence[LogDir]) -> None:
        self.directories = tuple(directories)
        self.logs: dict[Partition, Log] = {}
        self._directory_of: dict[Partition, LogDir] = {}
        self._namesakes: dict[Partition, list[LogDir]] = {}  # with another log of this name
        self._counts: Counter[LogDir] = Counter()  # of the logs in each, with those that are being created
        self._lock = Lock()  # between threads that create logs: each must see the choices of the others
        for directory in self.directories:  # those that are open already
            self._take_logs_of(directory)

    @property
    def first(self) -> LogDir:
        """The directory with the metadata."""
        return self.directories[0]

    @property
    def online(self) -> list[LogDir]:
        return [each for each in self.directories if each.failure.error is None]

    @property
    def offline(self) -> list[LogDir]:
        return [each for each in self.directories if each.failure.error is not None]

    def stored_cluster_id(self) -> str | None:
        """The cluster of the directories before they are opened, None if they are new.

        Raises `LogDirRefusedError` for partitions without an identity, `MalformedFileError`, `OSError`.
        """
        stored = (directory.stored_cluster_id() for directory in self.directories)
        return next((each for each in stored if each is not None), None)

    def seen_metadata(self) -> SeenMetadata:
        """What a directory has seen last of the metadata store. They need not be open.

        Raises `MalformedFileError`.
        """
        last = SeenMetadata()
        for directory in self.directories:
            try:
                last = max(last, directory.seen_metadata())
            except OSError:
                continue  # opening the directory decides whether the broker can do without it
        return last

    def store_seen_metadata(self, seen: SeenMetadata) -> None:
        """Store it in all directories that work."""
        self._each(lambda directory: directory.store_seen_metadata(seen))

    def sync_identities(self) -> bool:
        """Sync the names and topic ids of all logs; return False if a transient error requires a retry."""
        return self._each(LogDir.sync_identities)

    @property
    def logs_revision(self) -> int:
        """Up to which revision of the metadata the logs of new partitions were here before the directories were opened.

        A directory that is new, or another one than before, may have replaced one with any log.
        """
        return max((directory.logs_revision for directory in self.online), default=ALL_LOGS)

    def open(
        self,
        config_for: ConfigForTopic,
        *,
        node_id: int,
        cluster_id: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Open all directories; see `LogDir.open`. A new one gets the cluster id of the first.

        Raises the same errors, but `OSError` only for the first directory or for a transient error, and
        `LogDirRefusedError` for a partition that is in two directories with one topic id. Then no directory is locked.
        """
        try:
            keeps_gaps = not self.first.was_ours()
            for directory in self.directories:
                try:
                    directory.open(
                        config_for,
                        node_id=node_id,
                        cluster_id=cluster_id,
                        keeps_gaps=keeps_gaps,
                        progress=progress,
                    )
                except OSError as error:
                    if directory is self.first or is_transient(error):
                        raise
                    directory.failure.fail("opening it", error)
                else:
                    cluster_id = directory.meta.cluster_id
                    self._take_logs_of(directory)
        except BaseException:
            self.close(clean=False)
            raise

    def _take_logs_of(self, directory: LogDir) -> None:
        for key, log in directory.logs.items():
            if key in self.logs:
                for other in (self._directory_of[key], *self._namesakes.get(key, ())):
                    if other.logs[key].topic_id == log.topic_id:
                        raise LogDirRefusedError(_duplicate(other.logs[key], log))
                self._namesakes.setdefault(key, []).append(directory)
            else:
                self.logs[key] = log
                self._directory_of[key] = directory
        self._counts[directory] = len(directory.logs)

    def find(self, topic: str, partition: int, topic_id: bytes) -> Log | None:
        """The log of this topic id if there is one, else that of the name; None without any."""
        key = topic, partition
        for directory in self._namesakes.get(key, ()):
            if directory.logs[key].topic_id == topic_id:
                self._namesakes[key].remove(directory)
                self._namesakes[key].insert(0, self._directory_of[key])
                self.logs[key], self._directory_of[key] = directory.logs[key], directory
                break
        return self.logs.get(key)

    def every_log(self) -> list[Log]:
        """The logs of all names, and their namesakes."""
        others = [directory.logs[key] for key, found in tuple(self._namesakes.items()) for directory in found]
        return [*tuple(self.logs.values()), *others]

    def retire_namesakes(self, deleted: Container[bytes]) -> None:
        """Delete the namesakes whose topic ids are `deleted`, and set the others aside. Blocks.

        The error of one is logged; it stays what it is until the next start.
        """
        for key, directories in tuple(self._namesakes.items()):
            for directory in tuple(directories):
                try:
                    if directory.logs[key].topic_id in deleted:
                        _LOG.warning("%s is of an older topic of that name: deleted", directory.logs[key].directory)
                        directory.delete_log(*key)
                    else:
                        directory.set_log_aside(*key)
                except KafkaError as error:
                    _LOG.error("%s", error)
                else:
                    directories.remove(directory)
                    self._count(directory, -1)

    def directory_of(self, topic: str, partition: int) -> LogDir | None:
        """The directory of a partition's log, online or not."""
        return self._directory_of.get((topic, partition))

    @property
    def highest_producer_id(self) -> int:
        """The highest producer id in the logs (`ProducerState.highest_id`), -1 without any."""
        return max((log.producers.highest_id for log in self.every_log()), default=NO_PRODUCER_ID)

    def kraft_topics(self) -> KraftTopics | None:
        """The topics in the log of Kafka's controller; None if that is in none of the directories."""
        found = (directory.kraft_topics() for directory in self.online)
        return next((each for each in found if each is not None), None)

    # ------------------------------------------------------------------------------------------------------- partitions

    def create_log(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> Log:
        """Create the log of a new partition in the directory with the fewest, or return the existing log.

        Raises as `LogDir.create_log`, and KAFKA_STORAGE_ERROR if no directory is left.
        """
        key = topic, partition
        directory = self._directory_of.get(key)
        if directory is not None:
            return directory.create_log(topic, partition, topic_id, config)
        directory = self._next_directory()
        try:
            log = directory.create_log(topic, partition, topic_id, config)
        except BaseException:
            self._count(directory, -1)
            raise
        self._directory_of[key] = directory
        self.logs[key] = log
        return log

    def _next_directory(self) -> LogDir:
        """Return the directory for a new log, and count the log."""
        with self._lock:
            if not self.online:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "all log directories have failed")
            directory = min(self.online, key=self._counts.__getitem__)
            self._counts[directory] += 1
            return directory

    def _count(self, directory: LogDir, change: int) -> None:
        with self._lock:
            self._counts[directory] += change

    def open_log(
        self, directory: LogDir, topic: str, partition: int, config: LogConfig, checkpointed: Checkpointed
    ) -> Log:
        """Open the log of a partition that was put into `directory`, and has no log; see `LogDir.open_log`."""
        log = directory.open_log(topic, partition, config, checkpointed)
        self._count(directory, 1)
        self._directory_of[topic, partition] = directory
        self.logs[topic, partition] = log
        return log

    def delete_log(self, topic: str, partition: int) -> DeletionJob:
        """Remove the log of one partition; see `LogDir.delete_logs`. Raises `KafkaError`."""
        (job,) = self.delete_logs([(topic, partition)])
        if isinstance(job, KafkaError):
            raise job
        return job

    def delete_logs(self, partitions: Sequence[Partition]) -> list[DeletionJob | KafkaError]:
        """Remove logs; see `LogDir.delete_logs`. The error of a directory that fails is that of each of its logs.

        These are forgotten, too: their names can be used again, in another directory.
        """
        outcomes: dict[int, DeletionJob | KafkaError] = {}
        there: dict[LogDir, list[int]] = {}
        for number, partition in enumerate(partitions):
            try:
                there.setdefault(self._directory_with(*partition), []).append(number)
            except KafkaError as error:
                outcomes[number] = error.fresh()
        for directory, numbers in there.items():
            try:
                jobs = directory.delete_logs([partitions[number] for number in numbers])
            except KafkaError as error:
                jobs = [error] * len(numbers)
            for number, job in zip(numbers, jobs, strict=True):
                outcomes[number] = job
                if isinstance(job, DeletionJob) or directory.failure.error is not None:
                    self._forget(partitions[number], directory)
        return [outcomes[number] for number in range(len(partitions))]

    def set_log_aside(self, topic: str, partition: int) -> None:
        """Remove a stray partition's log, but keep its files; see `LogDir.set_log_aside`."""
        directory = self._directory_with(topic, partition)
        try:
            directory.set_log_aside(topic, partition)
        except KafkaError:
            if directory.failure.error is not None:
                self._forget((topic, partition), directory)
            raise
        self._forget((topic, partition), directory)

    def _forget(self, partition: Partition, directory: LogDir) -> None:
        """Forget a log; the next one of its name takes its place."""
        self._count(directory, -1)
        if others := self._namesakes.get(partition):
            self._directory_of[partition] = others.pop(0)
            self.logs[partition] = self._directory_of[partition].logs[partition]
        else:
            del self.logs[partition], self._directory_of[partition]

    def _directory_with(self, topic: str, partition: int) -> LogDir:
        directory = self._directory_of.get((topic, partition))
        if directory is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no log of {topic}-{partition}")
        return directory

    # -------------------------------------------------------------------------------------------------------- all of it

    def checkpoint_recovery_points(self) -> None:
        self._each(LogDir.checkpoint_recovery_points)

    def checkpoint_log_start_offsets(self) -> bool:
        """Write them; return False if a transient error requires a retry."""
        return self._each(LogDir.checkpoint_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._each(LogDir.checkpoint_high_watermarks)

    def delete_due(self) -> None:
        """Remove the files that are due."""
        self._each(lambda directory: directory.deletions.run_due())

    @property
    def has_deletions(self) -> bool:
        return any(len(directory.deletions) for directory in self.directories)

    def unsynced(self) -> list[Log]:
        """The logs of online directories that are not completely synced."""
        return [
            log
            for directory in self.online
            for log in tuple(directory.logs.values())
            if log.recovery_point < log.log_end_offset
        ]

    def _each(self, work: Callable[[LogDir], object]) -> bool:
        """Call `work` for the online directories; return False after a transient error, which was logged."""
        is_done = True
        for directory in self.online:
            try:
                work(directory)
            except TransientDiskError:
                is_done = False
            except KafkaError:
                if directory.failure.error is None:
                    raise
                # The disk failed, which was logged and reported to the broker; the other directories continue.
        return is_done

    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Set the broker epoch for the clean-shutdown markers."""
        for directory in self.directories:
            directory.broker_epoch = broker_epoch

    def refuse_all(self) -> None:
        """Refuse all work from now on, as if each directory had failed: for a broker that ends as a killed process."""
        for directory in self.directories:
            directory.failure.refuse_all()

    def close(self, *, clean: bool = True) -> None:
        """Close all directories; see `LogDir.close`."""
        for directory in self.directories:
            directory.close(clean=clean)
        self.logs.clear()
        self._directory_of.clear()
        self._namesakes.clear()


def _duplicate(first: Log, second: Log) -> str:
    """Say which of two logs of one topic id is probably the older copy."""
    newer, older = sorted((first, second), key=_end, reverse=True)
    difference = "which has the older records" if _end(newer) > _end(older) else "though both end alike"
    return (
        f"{first.topic}-{first.partition} of topic id {uuid_to_text(first.topic_id)} is in two log directories:"
        f" {_described(newer)} and {_described(older)}. Move one of them away, probably the second, {difference}"
    )


def _end(log: Log) -> tuple[int, int]:
    return log.latest_leader_epoch, log.log_end_offset


def _described(log: Log) -> str:
    return (
        f"{log.directory} (leader epoch {log.latest_leader_epoch}, start offset {log.log_start_offset}, end offset"
        f" {log.log_end_offset})"
    )
