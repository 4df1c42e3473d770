"""The log directories of all workers of a machine, while none of them runs: their locks, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from odradek.broker.config import BrokerConfig
from odradek.broker.config.workers import log_directory
from odradek.broker.startup.worker_directories import worker_directories
from odradek.broker.storage.checkpoints.meta_properties import MetaProperties, read_meta_properties
from odradek.broker.storage.checkpoints.metadata_revision import SeenMetadata, read_metadata_revision
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    DELETE_DIRECTORY_SUFFIX,
    HIGH_WATERMARKS,
    LOCK,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    METADATA_REVISION,
    RAFT_METADATA,
    RECOVERY_POINTS,
    STRAY_DIRECTORY_SUFFIX,
    parse_partition_directory,
)
from odradek.broker.storage.offline.directory_lock import is_locked
from odradek.broker.workers.layout import SpreadRefusedError
from odradek.broker.workers.plan import Place

CHECKPOINTS: Final = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)
_OWN_FILES: Final = frozenset((LOCK, META_PROPERTIES, CLEAN_SHUTDOWN, METADATA_REVISION, *CHECKPOINTS))
_RETIRED: Final = (DELETE_DIRECTORY_SUFFIX, STRAY_DIRECTORY_SUFFIX)


class Directory(NamedTuple):
    """What is in a log directory.

    `partitions`: the names of their directories; `retired`: directories of deleted and stray partitions.
    """

    meta: MetaProperties | None
    is_clean: bool
    seen: SeenMetadata
    partitions: Mapping[Partition, str]
    retired: list[str]


class Machine:
    """The log directories of all workers; `locked_machine` opens it. `directories` has those that exist, as read."""

    def __init__(self, config: BrokerConfig, files: Files, locks: ExitStack) -> None:
        self.files = files
        self.log_dirs = [str(each) for each in config.log_dirs]
        self.directories: dict[Place, Directory] = {}
        self._locks = locks
        self._locked: set[str] = set()

    @property
    def workers(self) -> set[int]:
        """The workers that have a directory; worker 0 also if it has none yet."""
        return {0, *(place.worker for place in self.directories)}

    def path(self, place: Place) -> str:
        return log_directory(self.log_dirs[place.log_dir], place.worker)

    def places(self, worker: int) -> list[Place]:
        """Return the places of a worker's directories, whether they exist or not."""
        return [Place(index, worker) for index in range(len(self.log_dirs))]

    def of(self, worker: int) -> list[Directory]:
        """Return the existing directories of a worker."""
        return [self.directories[place] for place in self.places(worker) if place in self.directories]

    def lock(self, path: str) -> None:
        """Lock an existing directory as a broker does, until the end. Raises `LogDirRefusedError`, `OSError`."""
        if path in self._locked:
            return
        try:
            is_free = not is_locked(path)  # Apache Kafka's lock is of another kind, which does not exclude this one
            if is_free:
                self._locks.callback(self.files.close, self.files.lock(f"{path}/{LOCK}"))
        except BlockingIOError:
            is_free = False
        if not is_free:
            raise LogDirRefusedError(f"a broker is using the log directory {path}: stop it first")
        self._locked.add(path)

    def read(self) -> None:
        """Lock and read all directories. Raises `LogDirRefusedError`, `SpreadRefusedError`, `MalformedFileError`."""
        self.directories = {}
        for index, path in enumerate(self.log_dirs):
            if not self.files.exists(path):
                continue
            try:
                for worker in (0, *(number for number, _ in worker_directories(path, self.files))):
                    self._read(Place(index, worker))
            except OSError as error:
                place = error.filename or path
                raise SpreadRefusedError(f"{place} cannot be read: {error.strerror or error}") from error

    def _read(self, place: Place) -> None:
        path = self.path(place)
        self.lock(path)
        partitions: dict[Partition, str] = {}
        retired, is_clean = [], False
        for entry in self.files.scan(path):
            is_clean = is_clean or entry.name == CLEAN_SHUTDOWN
            key = parse_partition_directory(entry.name) if entry.is_directory else None
            if key is not None and key[0] != RAFT_METADATA:
                if key in partitions:
                    raise SpreadRefusedError(
                        f"{path}/{partitions[key]} and {path}/{entry.name} are both partition {key[1]} of topic"
                        f" {key[0]}: move one of them away"
                    )
                partitions[key] = entry.name
            elif entry.is_directory and entry.name.endswith(_RETIRED):
                retired.append(entry.name)
        self.directories[place] = Directory(
            read_meta_properties(self.files, path),
            is_clean,
            read_metadata_revision(self.files, path),
            partitions,
            sorted(retired),
        )

    def others_in(self, place: Place) -> list[str]:
        """Return what is in a worker's directory beside the files of every log directory. Raises `OSError`."""
        entries = self.files.scan(self.path(place))
        return sorted(entry.name for entry in entries if entry.name.removesuffix(".tmp") not in _OWN_FILES)

    def is_on_one_file_system(self, place: Place) -> bool:
        """Whether a directory of a worker can take over directories by a rename. Raises `OSError`."""
        configured = Path(self.log_dirs[place.log_dir])
        return Path(self.path(place)).stat().st_dev == configured.stat().st_dev


@contextmanager
def locked_machine(config: BrokerConfig, files: Files) -> Iterator[Machine]:
    """Lock and read the directories of all workers. Raises as `Machine.read`."""
    with ExitStack() as locks:
        machine = Machine(config, files, locks)
        machine.read()
        yield machine
