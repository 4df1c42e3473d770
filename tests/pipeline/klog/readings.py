"""Helpers for tests of `format("klog")`: sources without Spark, expected rows, logs that are being written."""

from __future__ import annotations

import base64
import fcntl
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import Filter

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.klog.options import klog_options
from odradek.pipeline.klog.source import KlogReader
from odradek.pipeline.klog.tasks import KlogPiece, KlogTask
from odradek.pipeline.schema import CORRUPT_RECORD, column_names
from tests.storage.logs import NOW, batch, marker, open_log_dir

STORAGE = Path(__file__).parents[2] / "storage"
GOLDEN = STORAGE / "golden_dirs"
TOPICS = ("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "rolled", "logappend", "compacted",
          "idempotent", "transactional")  # fmt: skip
ALL = column_names(include_headers=True, include_corrupt=True)


class Reading:
    """A source with options, without Spark: its tasks and their rows."""

    def __init__(self, path: Path, filters: list[Filter] | None = None, **options: str) -> None:
        given = {name.replace("__", "."): value for name, value in options.items()}
        self._options = {"path": str(path)} | given
        self.reader = KlogReader(klog_options(self._options), ALL)
        if filters is not None:
            assert self.reader.pushFilters(filters) == filters
        self.tasks: list[KlogTask] = self.reader.partitions()

    @property
    def pieces(self) -> list[KlogPiece]:
        return [piece for task in self.tasks for piece in task.pieces]

    @property
    def bytes(self) -> int:
        return sum(piece.range.size for piece in self.pieces if piece.range is not None)

    def rows(self) -> list[dict[str, Any]]:
        return list(self._iterate(self.reader))

    def in_mode(self, mode: str) -> Iterator[tuple[int, str | None]]:
        """Read the tasks in this mode, which planning does not use: the offsets, and the texts about damage."""
        columns = ("offset", CORRUPT_RECORD)
        for row in self._iterate(KlogReader(klog_options(self._options | {"mode": mode}), columns)):
            yield row["offset"], row[CORRUPT_RECORD]

    def _iterate(self, reader: KlogReader) -> Iterator[dict[str, Any]]:
        for task in self.tasks:
            for rows in reader.read(task):
                yield from rows.to_pylist()

    def offsets(self) -> list[int]:
        return [row["offset"] for row in self.rows()]


@cache
def expected(name: str) -> list[dict[str, Any]]:
    path = STORAGE / "golden_expected" / f"{name}.jsonl"
    text = path.read_text() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def as_expected(row: dict[str, Any]) -> dict[str, Any]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else base64.b64encode(value).decode()

    return {
        "offset": row["offset"],
        "timestamp": round(row["timestamp"].timestamp() * 1000),
        "timestamp_type": row["timestampType"] + 1,
        "key": text(row["key"]),
        "value": text(row["value"]),
        "headers": [[header["key"], text(header["value"])] for header in row["headers"] or ()],
    }


class Writing:
    """The log of `orders-0`, as a broker writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened = open_log_dir(path)
        self.log = self._opened.create_log(
            "orders", 0, bytes(range(1, 17)), LogConfig(segment_bytes=200_000, index_interval_bytes=4096)
        )

    def append(self, count: int, **how: Any) -> None:
        values = [b"v" * 100] * count
        self.log.append_as_leader(batch(*values, timestamp=NOW + self.log.log_end_offset, **how), 0, NOW)

    def append_marker(self, producer_id: int, *, commit: bool) -> None:
        self.log.append_as_leader(marker(producer_id, 0, commit=commit), 0, NOW, Origin.COORDINATOR)

    def close(self) -> None:
        self._opened.close()


def segments(path: Path) -> list[Path]:
    return sorted((path / "orders-0").glob("*.log"))


def segment_of(path: Path, topic: str, number: int = -1) -> Path:
    return sorted((path / f"{topic}-0").glob("*.log"))[number]


def begin_a_batch(path: Path) -> None:
    """Change the segment to the active segment of a running broker."""
    beginning = path.read_bytes()[:100]
    with path.open("ab") as segment:
        segment.write(beginning)


@contextmanager
def lock_as_odradek(path: Path) -> Iterator[None]:
    """Hold the lock of the directory as a broker of this project does."""
    with (path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def lock_as_kafka(path: Path) -> Iterator[None]:
    """Hold the lock of the directory as Java's `FileChannel.lock` does."""
    with (path / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield
