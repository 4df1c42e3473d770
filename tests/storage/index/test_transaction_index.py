from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.index.transaction_index import BLOCK, AbortedTransaction, TransactionIndex

_ENTRY_BYTES = 34


class CountingFiles(OsFiles):
    """Counts the bytes that are read."""

    bytes_read = 0

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        self.bytes_read += length
        return super().pread(descriptor, length, position)


@pytest.fixture
def files() -> CountingFiles:
    return CountingFiles()


@pytest.fixture
def index(tmp_path: Path, files: CountingFiles) -> Iterator[TransactionIndex]:
    descriptors = DescriptorCache(files)
    yield TransactionIndex(str(tmp_path / "0.txnindex"), 0, descriptors, None)
    descriptors.close()


def fill(index: TransactionIndex, transactions: list[tuple[int, int]]) -> None:
    """Add aborted transactions of first and last offset, each of a producer of its own, and no others."""
    transactions = sorted(transactions, key=lambda transaction: transaction[1])
    for number, (first, last) in enumerate(transactions):
        later = [other for other, _ in transactions[number + 1 :] if other <= last]
        index.append(AbortedTransaction(number, first, last, min(later, default=last + 1)))


def short_ones(count: int) -> list[tuple[int, int]]:
    """Transactions of two records, one behind the other: offsets 3i + 1, 3i + 2 and the marker at 3i + 3."""
    return [(3 * number + 1, 3 * number + 3) for number in range(count)]


def test_a_search_finds_what_a_scan_of_all_entries_finds(index: TransactionIndex) -> None:
    randomness = random.Random(1)
    ends = randomness.sample(range(4000), 1200)
    fill(index, [(max(0, end - randomness.choice([1, 2, 40, 3000])), end) for end in ends])
    entries = list(index.entries())
    for _ in range(2):  # the second time with what the first has learned about the blocks
        for _ in range(500):
            start = randomness.randrange(4000)
            end = start + randomness.choice([1, 5, 100, 2000])
            wanted = [(e.producer_id, e.first_offset) for e in entries if e.last_offset >= start]
            found, is_complete = index.overlapping(start, end)
            assert found == [row for row in wanted if row[1] < end]
            assert is_complete == any(e.last_stable_offset >= end for e in entries if e.last_offset >= start)


def test_a_search_reads_only_the_entries_of_its_range(index: TransactionIndex, files: CountingFiles) -> None:
    fill(index, short_ones(2000))
    files.bytes_read = 0
    assert index.overlapping(3001, 3004) == ([(1000, 3001)], True)
    assert files.bytes_read < 64 * _ENTRY_BYTES


def test_blocks_that_began_after_the_range_are_read_once(index: TransactionIndex, files: CountingFiles) -> None:
    """A transaction that was open from offset 0 on keeps the last stable offset there until it ends."""
    count = 4 * BLOCK
    for number, (first, last) in enumerate(short_ones(count)):
        index.append(AbortedTransaction(number, first, last, 0))
    end = 3 * count + 1
    index.append(AbortedTransaction(count, 0, end, end + 1))

    for _ in range(2):
        before = files.bytes_read
        assert index.overlapping(4, 6) == ([(1, 4), (count, 0)], True)
        read = files.bytes_read - before

    assert read < 2 * BLOCK * _ENTRY_BYTES


@pytest.mark.parametrize("kept", [1, BLOCK, 3 * BLOCK])
def test_after_a_truncation_the_blocks_are_read_again(index: TransactionIndex, kept: int) -> None:
    count = 4 * BLOCK
    fill(index, short_ones(count))
    index.overlapping(0, 3 * count)
    index.truncate_to(3 * kept + 1)
    assert index.overlapping(0, 3 * count) == ([(n, 3 * n + 1) for n in range(kept)], False)

    for number in range(kept, count):  # all began at the start
        index.append(AbortedTransaction(number, 0, 3 * number + 3, 0))
    assert index.overlapping(3 * kept + 1, 3 * kept + 2) == ([(n, 0) for n in range(kept, count)], False)


def test_an_entry_of_an_unknown_version_is_corrupt(index: TransactionIndex) -> None:
    fill(index, short_ones(3))
    path = Path(index.path)
    data = bytearray(path.read_bytes())
    data[_ENTRY_BYTES + 1] = 1
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError, match="version 1"):
        index.overlapping(0, 10)


def test_a_file_that_another_process_has_cut_has_fewer_entries(index: TransactionIndex) -> None:
    fill(index, short_ones(3))
    Path(index.path).write_bytes(Path(index.path).read_bytes()[: _ENTRY_BYTES + 5])
    assert index.overlapping(0, 10) == ([(0, 1)], False)
