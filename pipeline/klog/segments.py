"""The log directory that `format("klog")` reads, with the client's class for partitions and an error in its words.

`odradek.broker.storage.offline.live_log` does the reading. Only the driver uses it: tasks get byte ranges
(`segment_ranges`).
"""

from __future__ import annotations

from odradek.broker.storage.names import META_PROPERTIES
from odradek.broker.storage.offline import listing
from odradek.broker.storage.offline.live_log import LiveLog, LiveLogDir
from odradek.client.record import TopicPartition

PartitionLog = LiveLog


class NoLogDirError(Exception):
    """The path is no log directory of a broker."""


class LogDirectory:
    """A log directory as it is when this object is made; see `LiveLogDir`."""

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
        self.partitions = [TopicPartition(*key) for key in self._directory.partitions]

    def open(self, partition: TopicPartition) -> PartitionLog:
        """Open the log of one of `partitions`. Raises OSError, which is `FileNotFoundError` if it changes meanwhile."""
        return self._directory.open(partition)
