"""The offset checkpoints of a log directory: one offset for each partition, in a small file replaced as a whole.

| file                               | its offsets                                                                    |
|------------------------------------|--------------------------------------------------------------------------------|
| `recovery-point-offset-checkpoint` | all below is synced, recovery starts here; after a clean stop the log's end    |
| `log-start-offset-checkpoint`      | the start of logs that start above the base of their first segment             |
| `replication-offset-checkpoint`    | the high watermark                                                             |
| `cleaner-offset-checkpoint`        | all below is compacted                                                         |

They are written periodically and at a stop; the last one by compaction. An offset may be too low but never too high:
every reader takes it as a lower bound.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Lock

from odradek.broker.storage.checkpoints.text_file import MalformedFileError, encode_rows, parse_rows
from odradek.broker.storage.disk.files import Files, replace_file

_LOG = logging.getLogger(__name__)

_VERSION = 0

Partition = tuple[str, int]


class OffsetCheckpoint:
    """One of these files; several threads may write it."""

    def __init__(self, files: Files, directory: str, name: str) -> None:
        self._files = files
        self._path = f"{directory}/{name}"
        self._lock = Lock()

    def read(self) -> dict[Partition, int]:
        """The offsets by topic and partition; none, with a warning in the log, if the file is missing or damaged."""
        try:
            return self.read_sound()
        except MalformedFileError as error:
            _LOG.warning("ignoring %s", error)
            return {}

    def read_sound(self) -> dict[Partition, int]:
        """As `read`, but raise `MalformedFileError` if the file is damaged. Apache Kafka creates it empty."""
        try:
            data = self._files.read(self._path)
            rows = parse_rows(data, columns=3) if data else []
        except FileNotFoundError:
            return {}
        except MalformedFileError as error:
            raise MalformedFileError(f"{self._path}: {error}") from None
        return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}

    def write(self, look: Callable[[], Mapping[Partition, int]]) -> None:
        """Write the offsets that `look` returns. Calls are serialized with it, so the file never goes back."""
        with self._lock:
            rows = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(look().items())]
            replace_file(self._files, self._path, encode_rows(_VERSION, rows))
