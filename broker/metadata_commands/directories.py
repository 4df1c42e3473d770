"""The log directories of a configuration, while its broker is stopped: identity, lock, and logs beside the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.cluster_record import DirectoriesState
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.randomness import SystemRandomness
from odradek.broker.startup.metadata_store import directories_state
from odradek.broker.storage import open_log_dir
from odradek.broker.storage.checkpoints.metadata_revision import SeenMetadata, write_metadata_revision
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_dir import LogDir, LogDirRefusedError
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.names import CLEAN_SHUTDOWN, LOCK
from odradek.protocol.plural import pluralize

_NAMED: Final = 10


class LocalLog(NamedTuple):
    """A log in one of the directories; `leader_epoch`: the latest in it, -1 without."""

    topic: str
    partition: int
    topic_id: bytes
    leader_epoch: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Comparison(NamedTuple):
    """The logs of one broker beside the topics of a store.

    `unknown`: of topics that the store does not have; `deleted`: of topics that it has as deleted; `missing`: the
    partitions that should be here and are not; `ahead`: with a later leader epoch than the store has.
    """

    unknown: list[LocalLog]
    deleted: list[LocalLog]
    missing: list[str]
    ahead: list[LocalLog]


def state_of(config: BrokerConfig, clock: Clock) -> DirectoriesState:
    """Read what the directories say. Raises `LogDirRefusedError`, `MalformedFileError`, `OSError`."""
    directories = [LogDir(path, clock=clock, randomness=SystemRandomness()) for path in config.log_dirs]
    return directories_state(LogDirs(directories))


@contextmanager
def locked(paths: Sequence[str]) -> Iterator[None]:
    """Hold the locks of the directories. Raises `LogDirRefusedError` if a broker uses one, `OSError`."""
    files = OsFiles()
    with ExitStack() as stack:
        for path in paths:
            try:
                stack.callback(files.close, files.lock(f"{path}/{LOCK}"))
            except BlockingIOError:
                raise LogDirRefusedError(f"a broker is using the log directory {path}: stop it first") from None
        yield


def local_logs(paths: Sequence[str]) -> list[LocalLog]:
    """Open the logs for reading, as a broker would, which takes as long as recovery after an unclean stop.

    Raises `MalformedFileError`, `OSError`.
    """
    found = []
    for path in paths:
        with open_log_dir(path) as log_dir:
            for (topic, partition), stored in log_dir.partitions.items():
                epochs = stored.leader_epochs
                found.append(LocalLog(topic, partition, stored.topic_id, epochs[-1].epoch if epochs else -1))
    return found


def compare(logs: Sequence[LocalLog], image: MetadataImage, node_id: int) -> Comparison:
    """Compare the logs of broker `node_id` with the topics of a store."""
    here = {(log.topic_id, log.partition): log for log in logs}
    ahead, missing = [], []
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            log = here.get((topic.topic_id, index))
            if log is not None and log.leader_epoch > partition.leader_epoch:
                ahead.append(log)
            elif log is None and node_id in partition.replicas:
                missing.append(f"{topic.name}-{index}")
    without = [log for log in logs if log.topic_id not in image.topics_by_id]
    return Comparison(
        [log for log in without if log.topic_id not in image.deleted],
        [log for log in without if log.topic_id in image.deleted],
        missing,
        ahead,
    )


def store_revision(paths: Sequence[str], revision: int) -> None:
    """Make the directories accept the store at a revision, and any epoch of their broker. Raises `OSError`."""
    files = OsFiles()
    for path in paths:
        write_metadata_revision(files, path, SeenMetadata(revision))


def was_stopped_cleanly(paths: Sequence[str]) -> bool:
    """Whether every directory has the marker of a clean stop."""
    files = OsFiles()
    return all(files.exists(f"{path}/{CLEAN_SHUTDOWN}") for path in paths)


def counted(what: str, names: Sequence[object]) -> str:
    """`3 logs (a-0, a-1, b-0)`; the first ten are named."""
    shown = ", ".join(map(str, names[:_NAMED])) + (", …" if len(names) > _NAMED else "")
    return f"{pluralize(len(names), what)} ({shown})" if names else f"no {what}"
