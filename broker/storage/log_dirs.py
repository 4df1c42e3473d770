"""The log directories of a broker (`log.dirs`), each perhaps on a disk of its own (JBOD), taken together.

A partition's log lies in one of them. A new one goes where the fewest are (Kafka's `LogManager.nextLogDirs`). Each
directory has a lock, an id, checkpoints and a clean-shutdown marker of its own, and fails for itself: then its logs are
out of reach until the next start (`disk_failure`), and the others go on.

| a directory that cannot be opened, or fails later | then |
|---|---|
| the first, which holds the metadata, too | the broker does not start, or ends, as Kafka without `metadata.log.dir` |
| another | it is `offline`; what is not found elsewhere may be in there, so it must not be made anew |

`logs` is changed by whatever thread creates or deletes a log; readers copy it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock

from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.deletions import DeletionJob
from odradek.broker.storage.disk.disk_errors import TransientDiskError, is_transient
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import ConfigForTopic, LogDir, LogDirRefusedError
from odradek.broker.storage.offline.kraft_topics import KraftTopics
from odradek.broker.storage.opening.log_opening import Progress
from odradek.broker.storage.producers.producer_state import NO_PRODUCER_ID
from odradek.protocol.errors import ErrorCode, KafkaError


class LogDirs:
    """See the module. `directories` are in the order of the configuration, those that failed included."""

    def __init__(self, directories: Sequence[LogDir]) -> None:
        self.directories = tuple(directories)
        self.logs: dict[Partition, Log] = {}
        self._directory_of: dict[Partition, LogDir] = {}
        self._being_made: Counter[LogDir] = Counter()
        self._lock = Lock()  # between threads that create logs: each has to see what the others have chosen
        for directory in self.directories:  # that are open already
            self._take_logs_of(directory)

    @property
    def first(self) -> LogDir:
        """The one that holds the metadata."""
        return self.directories[0]

    @property
    def online(self) -> list[LogDir]:
        return [each for each in self.directories if each.failure.error is None]

    @property
    def offline(self) -> list[LogDir]:
        return [each for each in self.directories if each.failure.error is not None]

    def open(
        self,
        config_for: ConfigForTopic,
        *,
        node_id: int,
        cluster_id: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Open all; see `LogDir.open`. One that is new gets the cluster id of the first.

        Raises as that does, but `OSError` for the first only, or where it says nothing against the disk; and
        `LogDirRefusedError` for a partition that is in two. None of them is held then.
        """
        try:
            for directory in self.directories:
                try:
                    directory.open(config_for, node_id=node_id, cluster_id=cluster_id, progress=progress)
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
                other = self._directory_of[key].path
                raise LogDirRefusedError(f"{key[0]}-{key[1]} is in two log directories, {other} and {directory.path}")
            self.logs[key] = log
            self._directory_of[key] = directory

    def directory_of(self, topic: str, partition: int) -> LogDir | None:
        """The directory that a partition's log is in, whether it works or not."""
        return self._directory_of.get((topic, partition))

    @property
    def highest_producer_id(self) -> int:
        """The highest producer id that the logs have met (`ProducerState.highest_id`), -1 without any."""
        return max((log.producers.highest_id for log in self.logs.values()), default=NO_PRODUCER_ID)

    def kraft_topics(self) -> KraftTopics | None:
        """What Kafka's controller, if it kept its log in one of the directories, knew of the topics."""
        found = (directory.kraft_topics() for directory in self.online)
        return next((each for each in found if each is not None), None)

    # ------------------------------------------------------------------------------------------------------- partitions

    def create_log(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> Log:
        """Make the log of a new partition where the fewest are, or return the one there is; as `LogDir.create_log`.

        Raises KAFKA_STORAGE_ERROR if there is no directory left.
        """
        key = topic, partition
        with self._lock:
            directory = self._directory_of.get(key) or self._next_directory()
            self._being_made[directory] += 1
        try:
            log = directory.create_log(topic, partition, topic_id, config)
        finally:
            with self._lock:
                self._being_made[directory] -= 1
        self._directory_of[key] = directory
        self.logs[key] = log
        return log

    def _next_directory(self) -> LogDir:
        if not self.online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "all log directories have failed")
        return min(self.online, key=lambda each: len(each.logs) + self._being_made[each])

    def delete_log(self, topic: str, partition: int) -> DeletionJob:
        """Take a partition's log out; as `LogDir.delete_log`."""
        directory = self._directory_of.get((topic, partition))
        if directory is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no log of {topic}-{partition}")
        job = directory.delete_log(topic, partition)
        del self.logs[topic, partition], self._directory_of[topic, partition]
        return job

    # -------------------------------------------------------------------------------------------------------- all of it

    def checkpoint_recovery_points(self) -> None:
        self._each(LogDir.checkpoint_recovery_points)

    def checkpoint_log_start_offsets(self) -> bool:
        """Write them; False if that is to be tried again, somewhere."""
        return self._each(LogDir.checkpoint_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._each(LogDir.checkpoint_high_watermarks)

    def delete_due(self) -> None:
        """Remove the files whose time has come."""
        self._each(lambda directory: directory.deletions.run_due())

    @property
    def has_deletions(self) -> bool:
        return any(len(directory.deletions) for directory in self.directories)

    def unsynced(self) -> list[Log]:
        """The logs, where the disk works, of which not everything is synced."""
        return [
            log
            for directory in self.online
            for log in tuple(directory.logs.values())
            if log.recovery_point < log.log_end_offset
        ]

    def _each(self, work: Callable[[LogDir], object]) -> bool:
        """Do work where the disk works; False if it ran into a transient error, of which a warning was logged."""
        is_done = True
        for directory in self.online:
            try:
                work(directory)
            except TransientDiskError:
                is_done = False
            except KafkaError:
                if directory.failure.error is None:
                    raise
                # The disk failed under it, which has been said, and told to the broker; the others are to go on.
        return is_done

    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Tell the directories what their clean-shutdown markers are to say."""
        for directory in self.directories:
            directory.broker_epoch = broker_epoch

    def close(self, *, clean: bool = True) -> None:
        """Let all go; see `LogDir.close`."""
        for directory in self.directories:
            directory.close(clean=clean)
        self.logs.clear()
        self._directory_of.clear()
