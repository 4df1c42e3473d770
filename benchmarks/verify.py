"""The speed of verifying a log directory: `python -m benchmarks.verify` prints MB a second of processor time.

Logs of 512 MiB each, with batches of 16 KiB, of 1 KiB, and of 1 KiB in transactions, in the page cache, with the
indexes of a broker.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.storage import CONFIG, TOPIC_ID, open_dir
from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.verification import Verification
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker

LOG_BYTES = 512 << 20
NOW = 1_700_000_000_000
TRANSACTION = 100  # batches


def fill(log: Log, batch_bytes: int, *, transactional: bool) -> None:
    sequence = 0
    while log.size_bytes < LOG_BYTES:
        builder = BatchBuilder(
            producer_id=7 if transactional else -1,
            producer_epoch=0 if transactional else -1,
            base_sequence=sequence if transactional else -1,
            is_transactional=transactional,
        )
        builder.append(NOW + sequence, None, bytes(batch_bytes - 80))
        log.append_as_leader(memoryview(builder.build()), 0, NOW)
        sequence += 1
        if transactional and sequence % TRANSACTION == 0:
            kind = ControlRecordType.ABORT if sequence % (2 * TRANSACTION) else ControlRecordType.COMMIT
            marker = build_end_txn_marker(EndTxnMarker(kind, 0), 7, 0, NOW + sequence)
            log.append_as_leader(memoryview(marker), 0, NOW, Origin.COORDINATOR)


def fail(problem: Problem) -> None:
    raise AssertionError(str(problem))


def ignore(done: int, total: int) -> None:
    pass


def measure(batch_bytes: int, *, transactional: bool) -> None:
    with tempfile.TemporaryDirectory() as path:
        log_dir = open_dir(Path(path))
        fill(log_dir.create_log("t", 0, TOPIC_ID, CONFIG), batch_bytes, transactional=transactional)
        log_dir.close()
        for _ in range(3):
            started, used = perf_counter(), process_time()
            outcome = Verification(path, fail, ignore).run()
            used, passed = process_time() - used, perf_counter() - started
            print(
                f"batches of {batch_bytes:6d} bytes{' in transactions' if transactional else ''}: "
                f"{outcome.bytes / used / 1e6:6.0f} MB/s of processor time, "
                f"{outcome.bytes / passed / 1e6:6.0f} by the clock"
            )


def main() -> None:
    for batch_bytes, transactional in ((16384, False), (1024, False), (1024, True)):
        measure(batch_bytes, transactional=transactional)


if __name__ == "__main__":
    main()
