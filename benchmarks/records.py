"""The cost of a record in plain Python: `python -m benchmarks.records` prints µs a record, the best of 30 rounds.

Batches of 1,000 records: appended to a builder, iterated, and validated as by a leader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from time import process_time

from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BatchHeader, read_batch_header
from odradek.protocol.records.record_headers import Header
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.records.record_validation import validate_records

COUNT = 1000
KINDS: dict[str, tuple[bytes | None, bytes, list[Header]]] = {
    "100 B, key": (b"key-12345", b"x" * 100, []),
    "100 B, no key": (None, b"x" * 100, []),
    "100 B, two headers": (b"key-12345", b"x" * 100, [("trace", b"abcdef"), ("none", None)]),
    "1 KB, key": (b"key-12345", b"x" * 1000, []),
}


def microseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the best round, per record."""
    times = []
    for _ in range(30):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times) / COUNT * 1e6


def filled(key: bytes | None, value: bytes, headers: list[Header]) -> BatchBuilder:
    builder = BatchBuilder()
    append = builder.append
    for i in range(COUNT):
        append(1_700_000_000_000 + i, key, value, headers)
    return builder


def iterated(data: bytes, header: BatchHeader) -> None:
    deque(iter_records(data, 0, header), maxlen=0)


def main() -> None:
    print(f"{'record':20} {'append':>8} {'iterate':>8} {'validate':>8}")
    for name, kind in KINDS.items():
        data = bytes(filled(*kind).build())
        header = read_batch_header(data)
        appending = microseconds(partial(filled, *kind))
        iterating = microseconds(partial(iterated, data, header))
        validating = microseconds(partial(validate_records, data, 0, header))
        print(f"{name:20} {appending:8.2f} {iterating:8.2f} {validating:8.2f}")


if __name__ == "__main__":
    main()
