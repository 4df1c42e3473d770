"""Reads that begin where the one before them was cut off."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.broker.storage.batch_scan import find_cut_off_batch
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.opening.log_opening import create_log
from odradek.protocol.errors import KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import TOPIC_ID, append, batch, make_resources, read_all, values_of

BATCHES = 100  # more than are cached


def of_batches(log: Log, count: int = BATCHES, size: int = 1000) -> Log:
    for number in range(count):
        append(log, number.to_bytes(2), bytes(size))
    return log


@pytest.mark.parametrize("seed", range(20))
def test_reads_of_any_size_return_the_whole_log(new_log: NewLog, seed: int) -> None:
    chance = random.Random(seed)
    log = new_log(segment_bytes=20_000, index_interval_bytes=chance.choice((0, 1000, 4096)))
    values = [bytes([number]) * chance.choice((1, 100, 3000)) for number in range(150)]
    for value in values:
        append(log, value)

    for max_bytes in (1, 200, 3500, 10_000):
        for start in (0, 70):
            assert values_of(log, start=start, max_bytes=max_bytes) == values[start:]


def test_positions_cached_before_a_truncation_are_not_used(new_log: NewLog) -> None:
    log = of_batches(new_log())
    with log.read(0, 1500, log.log_end_offset) as data:
        data.read()  # where offset 2 is, in a batch of 1,000 bytes
    log.truncate_to(2)
    sizes = [3000, *(10 for _ in range(BATCHES))]
    for size in sizes:
        append(log, b"x" * size)

    assert [len(record.value or b"") for record in read_all(log, start=2, max_bytes=1500)] == sizes


def test_a_cut_off_batch_is_found_by_its_head() -> None:
    first, second = bytes(batch(b"a", b"b")), bytearray(batch(b"c"))
    second[:8] = (2).to_bytes(8)

    assert find_cut_off_batch(first + second[:27]) == (2, len(first), len(second))
    assert find_cut_off_batch(first + second[:26]) is None, "too few bytes to decide"
    assert find_cut_off_batch(first + second) is None, "it is whole"
    assert find_cut_off_batch(first[:-1]) is None, "not one is whole"
    assert find_cut_off_batch(b"") is None


def test_bytes_without_a_sound_head_are_not_taken_for_a_batch() -> None:
    first, second = bytes(batch(b"a", b"b")), bytearray(batch(b"c" * 50))
    for position, value in ((0, 1), (8, -1), (16, 1), (23, -1)):  # offset, length, magic, last offset delta
        spoiled = bytearray(second)
        spoiled[:8] = (2).to_bytes(8)
        width = {0: 8, 8: 4, 16: 1, 23: 4}[position]
        spoiled[position : position + width] = value.to_bytes(width, signed=True)

        assert find_cut_off_batch(first + spoiled[:40]) is None


def test_a_head_with_a_size_beyond_the_file_is_not_cached(tmp_path: Path) -> None:
    log = of_batches(create_log(f"{tmp_path}/t-0", "t", 0, TOPIC_ID, LogConfig(), make_resources(tmp_path)))
    size = log.size_bytes // BATCHES
    with Path(log.active_segment.log.path).open("r+b") as file:
        file.seek(size + 8)
        file.write((1 << 30).to_bytes(4))
    with log.read(0, size + 100, log.log_end_offset) as data:
        data.read()
    with pytest.raises(KafkaError, match=r"a batch of 1073741836 bytes where \d+ remain"):
        log.read(2, size, log.log_end_offset)
