"""`python -m tests.inspection.dump.record`: record the output of Kafka's DumpLogSegments for every case."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.inspection.dump.cases import CASES
from tests.inspection.dump.kafka import record
from tests.inspection.dump.recording import RECORDED


def main() -> None:
    RECORDED.mkdir(exist_ok=True)
    for old in RECORDED.glob("*.txt"):
        old.unlink()
    for case in CASES:
        with tempfile.TemporaryDirectory() as directory:
            (RECORDED / f"{case.name}.txt").write_bytes(record(case, Path(directory)))


if __name__ == "__main__":
    main()
