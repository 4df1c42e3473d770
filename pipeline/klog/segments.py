"""The log directory that `format("klog")` reads, with the client's class for partitions and an error in its words.

`odradek.broker.storage.offline.live_log` does the reading. Only the driver uses it: tasks get byte ranges
(`segment_ranges`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container
from types import TracebackType
from typing import Final, Self, TypeVar

from odradek.broker.storage.names import META_PROPERTIES
from odradek.broker.storage.offline import listing
from odradek.broker.storage.offline.live_log import LiveLog, LiveLogDir
from odradek.client.record import TopicPartition

_LOG = logging.getLogger(__name__)

PartitionLog = LiveLog
T = TypeVar("T")

# A broker replaces files rarely: when it compacts segments. The pauses are 10 ms to 0.64 s, together 2.5 s.
_PAUSES: Final = tuple(0.01 * 2 ** min(attempt, 6) for attempt in range(9))


class NoLogDirError(Exception):
    """The path is no log directory of a broker."""


class DirectoryChangesError(Exception):
    """A partition changed during every attempt to read its directory."""


def while_it_changes(action: Callable[[], T], partition: TopicPartition, *, or_nothing: bool = False) -> T | None:
    """Return the result of `action`, which reads a log; retry with pauses while its files are renamed or replaced.

    If they always are, raises DirectoryChangesError, or with `or_nothing` returns None.
    """
    for pause in (*_PAUSES, None):
        try:
            return action()
        except FileNotFoundError as error:
            if pause is not None:
                time.sleep(pause)
            elif not or_nothing:
                raise DirectoryChangesError(
                    f"{partition} could not be read: {error.filename} was removed, replaced or written meanwhile, "
                    f"{len(_PAUSES) + 1} times in a row. Read again, or set failOnDataLoss to false"
                ) from error
            else:
                _LOG.warning("%s is left out: its files change faster than they can be listed: %s", partition, error)
    return None


class LogDirectory:
    """A log directory as it is when this object is made, see `LiveLogDir`. Must be closed, e.g. by `with`."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._directory = LiveLogDir(path)
        except listing.NoLogDirError:
            raise NoLogDirError(
                f"{path} is no log directory: there is no partition in it, and no {META_PROPERTIES}"
            ) from None
        except OSError as error:
            raise NoLogDirError(f"{path} cannot be read as a log directory: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._directory.close()

    def topics(self) -> set[str]:
        """The topics that seem to be in the directory, by its names alone."""
        return self._directory.topics()

    def partitions(self, topics: Container[str]) -> list[TopicPartition]:
        """The partitions of these topics, in order. Lists only their directories."""
        return [TopicPartition(*key) for key in self._directory.candidates(topics) if self._directory.contains(key)]

    def contains(self, partition: TopicPartition) -> bool:
        return self._directory.contains(partition)

    def exists(self, partition: TopicPartition) -> bool:
        """Whether the directory of a partition is still there."""
        return self._directory.exists(partition)

    def read(self, partition: TopicPartition, action: Callable[[PartitionLog], T]) -> T:
        """Return the result of `action` for the log of a partition, as if its directory did not change meanwhile.

        Runs `action` again without the segments that retention removes meanwhile. Each round has fewer of them, so even
        retention that never pauses does not prevent a result. Raises `FileNotFoundError` after other changes.
        """
        log = self._directory.open(partition)
        while True:
            try:
                return action(log)
            except FileNotFoundError:
                if not log.drop_removed():
                    raise
