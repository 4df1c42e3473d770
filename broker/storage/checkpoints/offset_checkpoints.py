"""The offset checkpoints of a log directory: one offset for each partition, in a small file replaced as a whole.

| file                               | its offsets                                                                    |
|------------------------------------|--------------------------------------------------------------------------------|
| `recovery-point-offset-checkpoint` | all below is synced, recovery starts here; after a clean stop the log's end    |
| `log-start-offset-checkpoint`      | the start of logs that start above the base of their first segment             |
| `replication-offset-checkpoint`    | the high watermark                                                             |
| `cleaner-offset-checkpoint`        | all below is compacted                                                         |

They are written periodically and at a stop; the last one by compaction, too. An offset may be too low but never too
high: every reader takes it as a lower bound. So what lowers an offset lowers its row: a truncation before it returns, a
recovery before the log directory is open. A kill between the two leaves a row above the end of the log, which counts as
that end, and for the log start as none.

The rows name topics, and a topic's name is used again; the format is Kafka's and has no topic id. Two rules make a row
that of the log in the directory of its name, wherever a process is killed between two writes:

- A log that is retired first loses its rows, then its directory gets another name (`retirement`).
- A log is created only after all rows of its name are gone, durably (`LogDir.create_log`): those that the first rule
  missed, because the log vanished with a power cut or was written by Apache Kafka.

So a row was written after the log of that name was created, from this log: its topic id is that in the directory's
`partition.metadata`. A second file with topic ids could contradict the first one after a kill between the two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from threading import Lock

from odradek.broker.storage.checkpoints.text_file import MalformedFileError, encode_rows, parse_rows
from odradek.broker.storage.disk.files import Files, replace_file

_LOG = logging.getLogger(__name__)

_VERSION = 0

Partition = tuple[str, int]


class OffsetCheckpoint:
    """One of these files; several threads may write it, and nobody else does. The writing methods raise `OSError`."""

    def __init__(self, files: Files, directory: str, name: str) -> None:
        self._files = files
        self._path = f"{directory}/{name}"
        self._lock = Lock()
        self._rows: dict[Partition, int] | None = None  # those of the file, None if they must be read

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
            self._replace(dict(look()))

    def drop(self, partitions: Collection[Partition]) -> None:
        """Remove the rows of partitions; writes nothing if there are none."""
        with self._lock:
            rows = self._stored()
            if not rows.keys().isdisjoint(partitions):
                self._replace({key: offset for key, offset in rows.items() if key not in partitions})

    def lower(self, partition: Partition, offset: int) -> None:
        """Lower the row of a partition to `offset`; writes nothing if it is not above."""
        with self._lock:
            rows = self._stored()
            if rows.get(partition, offset) > offset:
                self._replace({**rows, partition: offset})

    def _stored(self) -> dict[Partition, int]:
        if self._rows is None:
            self._rows = self.read()
        return self._rows

    def _replace(self, rows: dict[Partition, int]) -> None:
        self._rows = None  # until it is certain which rows the file has
        lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(rows.items())]
        replace_file(self._files, self._path, encode_rows(_VERSION, lines))
        self._rows = rows
