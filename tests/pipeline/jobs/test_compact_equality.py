"""`compact` keeps the same records as the broker's cleaner, compared on two equal logs of which one is cleaned."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from odradek.broker.storage.append.origin import Origin
from odradek.pipeline.jobs import run
from tests.storage.compaction.compacted import Compacted
from tests.storage.logs import NOW, append, marker, read_all

pytestmark = pytest.mark.spark


def test_compact_keeps_what_the_cleaner_keeps(spark: SparkSession, tmp_path: Path) -> None:
    cleaned, kept = Compacted(tmp_path / "cleaned"), Compacted(tmp_path / "kept")
    random = Random(1)
    for _ in range(2):
        for _ in range(150):
            key = b"k%d" % min(int(random.paretovariate(0.7)), 60)
            value = None if random.random() < 0.1 else random.randbytes(8)
            for log in (cleaned.log, kept.log):
                append(log, value, key=key)
        for log in (cleaned.log, kept.log):
            append(log, b"never", key=b"k1", producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
            log.append_as_leader(marker(9, 0, commit=False), 0, NOW, Origin.COORDINATOR)
        cleaned.roll()
        kept.roll()
        assert cleaned.compact()
    for log in (cleaned.log, kept.log):
        append(log, b"in the active segment", key=b"k1")
        log.advance_high_watermark(log.log_end_offset)
    end = cleaned.log.segments.active.base_offset
    expected = [(r.offset, r.key, r.value, r.timestamp) for r in read_all(cleaned.log, end=end)]
    assert any(value is None for _, _, value, _ in expected)
    for each in (cleaned, kept):
        each.log_dir.close()
        each.resources.descriptors.close()

    output = str(tmp_path / "out")
    line = ["compact", "--log-dir", str(tmp_path / "kept"), "--topic", "t", "--output", output]
    assert run(line) == 0
    rows = spark.read.parquet(output).orderBy("offset").collect()
    found = [(r.offset, bytes(r.key), r.value and bytes(r.value), round(r.timestamp.timestamp() * 1000)) for r in rows]
    assert found == expected
    assert run(line) == 1  # the output exists
    assert run([*line, "--overwrite", "--whole-log", "--drop-tombstones"]) == 0
    held = {bytes(row.key): bytes(row.value) for row in spark.read.parquet(output).collect()}
    assert held[b"k1"] == b"in the active segment"
