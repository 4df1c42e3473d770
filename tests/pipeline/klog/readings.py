"""Helpers for tests of `format("klog")`: sources without Spark, expected rows, logs that are being written."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import Filter

from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.klog.options import klog_options
from odradek.pipeline.klog.plan import KlogPartition
from odradek.pipeline.klog.source import KlogReader
from odradek.pipeline.schema import column_names
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
        self.reader = KlogReader(klog_options({"path": str(path)} | given), ALL)
        if filters is not None:
            assert self.reader.pushFilters(filters) == filters
        self.tasks: list[KlogPartition] = self.reader.partitions()

    @property
    def bytes(self) -> int:
        return sum(task.range.end - task.range.begin for task in self.tasks if task.range is not None)

    def rows(self) -> list[dict[str, Any]]:
        return [row for task in self.tasks for batch in self.reader.read(task) for row in batch.to_pylist()]

    def offsets(self) -> list[int]:
        return [row["offset"] for row in self.rows()]


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
        self.log.append_as_leader(marker(producer_id, 0, commit=commit), 0, NOW, from_client=False)

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
