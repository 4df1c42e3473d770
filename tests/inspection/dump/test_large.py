"""The memory for a large log, and the time for its indexes."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

from odradek.broker.inspection.dump.options import DumpOptions
from odradek.broker.inspection.dump.segments import dump_segments
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import assign_offsets

pytestmark = pytest.mark.slow

RECORDS = 10
BATCHES = 1500


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 15 MB and its two indexes, with an entry for each batch."""
    directory = tmp_path_factory.mktemp("large")
    builder = BatchBuilder()
    for _ in range(RECORDS):
        builder.append(1, b"key", b"v" * 1000)
    batch = builder.build()
    entries = range(BATCHES)
    with (directory / "0.log").open("wb") as log:
        for number in entries:
            assign_offsets(batch, 0, number * RECORDS, 0)
            log.write(batch)
    offsets = [number * RECORDS + RECORDS - 1 for number in entries]
    index = b"".join(struct.pack(">ii", offset, number * len(batch)) for number, offset in enumerate(offsets))
    (directory / "0.index").write_bytes(index)
    (directory / "0.timeindex").write_bytes(b"".join(struct.pack(">qi", 1, offset) for offset in offsets))
    return directory


@pytest.mark.parametrize(
    ("file", "lines"), [("0.log", BATCHES * (RECORDS + 1)), ("0.index", BATCHES), ("0.timeindex", BATCHES)]
)
def test_memory_is_bounded(segment: Path, file: str, lines: int) -> None:
    tracemalloc.start()
    pieces = dump_segments([str(segment / file)], DumpOptions(is_deep=True, prints_contents=True))
    printed = sum(piece.count("\n") for piece in pieces)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert printed >= lines
    assert peak < 5 << 20
