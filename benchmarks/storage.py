"""The cost of the log: `python -m benchmarks.storage` prints µs of CPU an operation, and the time to open logs.

Appends are of one batch with one record of 100 bytes, as from small producers, and of batches of 16 KiB. Reads are of a
consumer at the tail, and of one at any offset (an index search, and a scan of a few KiB of batch headers). All files
are in the page cache; only the clean stop syncs them.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

from odradek.broker.clock import SystemClock
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.records.batch_builder import BatchBuilder

CONFIG = LogConfig()
TOPIC_ID = bytes(range(16))
APPENDS = 100_000
PARTITIONS = 1000


def open_dir(path: Path) -> LogDir:
    log_dir = LogDir(path, clock=SystemClock(), randomness=SystemRandomness())
    log_dir.open(lambda _: CONFIG, node_id=1)
    return log_dir


def built(value: bytes, now_ms: int, sequence: int = -1) -> memoryview:
    if sequence >= 0:
        builder = BatchBuilder(producer_id=5, producer_epoch=0, base_sequence=sequence)
    else:
        builder = BatchBuilder()
    builder.append(now_ms, b"key", value)
    return memoryview(builder.build())


def microseconds(count: int, work: Callable[[], None]) -> float:
    start = process_time()
    work()
    return (process_time() - start) / count * 1e6


def appending(log: Log, batches: list[memoryview], now_ms: int) -> float:
    def work() -> None:
        for data in batches:
            log.append_as_leader(data, 0, now_ms)

    return microseconds(len(batches), work)


def reading(log: Log, offsets: list[int]) -> float:
    def work() -> None:
        end = log.log_end_offset
        for offset in offsets:
            log.read(offset, 1 << 20, end).release()

    return microseconds(len(offsets), work)


def one_log(path: Path) -> None:
    now_ms = SystemClock().time_ms()
    log_dir = open_dir(path)
    log = log_dir.create_log("one", 0, TOPIC_ID, CONFIG)
    small, large = b"x" * 100, b"x" * 16_000
    plain = appending(log, [built(small, now_ms) for _ in range(APPENDS)], now_ms)
    idempotent = appending(log, [built(small, now_ms, index) for index in range(APPENDS)], now_ms)
    print(f"append, 170 B batch            {plain:8.2f}")
    print(f"append, 170 B, idempotent      {idempotent:8.2f}")
    end = log.log_end_offset
    print(f"read at the tail               {reading(log, [end - 1] * APPENDS):8.2f}")
    print(f"read at any offset             {reading(log, [random.randrange(end) for _ in range(20_000)]):8.2f}")
    print(f"append, 16 KiB batch           {appending(log, [built(large, now_ms) for _ in range(5000)], now_ms):8.2f}")
    log_dir.close(clean=False)
    start = perf_counter()
    log_dir = open_dir(path)
    print(f"recovery of {2 * APPENDS} small batches and 80 MB of others: {perf_counter() - start:.2f} s")
    log_dir.close()


def many_logs(path: Path) -> None:
    now_ms = SystemClock().time_ms()
    log_dir = open_dir(path)
    start = perf_counter()
    for partition in range(PARTITIONS):
        log_dir.create_log("many", partition, TOPIC_ID, CONFIG)
    print(f"{PARTITIONS} logs: created in {perf_counter() - start:.2f} s")
    for log in log_dir.logs.values():
        log.append_as_leader(built(b"x", now_ms, 0), 0, now_ms)
    start = perf_counter()
    log_dir.close()
    print(f"{PARTITIONS} logs: closed and synced in {perf_counter() - start:.2f} s")
    start = perf_counter()
    log_dir = open_dir(path)
    print(f"{PARTITIONS} logs: opened after a clean stop in {perf_counter() - start:.2f} s")
    log_dir.close()


def main() -> None:
    path = Path(tempfile.mkdtemp(prefix="benchmark-"))
    try:
        one_log(path / "one")
        many_logs(path / "many")
    finally:
        shutil.rmtree(path)


if __name__ == "__main__":
    main()
