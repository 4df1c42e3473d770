"""Look-ups in an offset index of several blocks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.index.offset_index import OffsetIndex, OffsetPosition

ENTRIES = 5000  # of which a block in memory holds a thousand
BASE_OFFSET = 100


@pytest.fixture
def index(tmp_path: Path) -> OffsetIndex:
    """Batches of ten offsets and 1,000 bytes each."""
    made = OffsetIndex(str(tmp_path / "0.index"), BASE_OFFSET, DescriptorCache(OsFiles()), 8 * 2 * ENTRIES, None)
    made.create()
    for number in range(ENTRIES):
        made.append(BASE_OFFSET + 10 * number + 9, 1000 * number)
    return made


def entry_for(offset: int) -> OffsetPosition:
    number = (offset - BASE_OFFSET + 1) // 10 - 1
    return OffsetPosition(BASE_OFFSET + max(10 * number + 9, 0), max(1000 * number, 0))


def test_look_ups_in_any_order(index: OffsetIndex) -> None:
    offsets = [random.Random(1).randrange(BASE_OFFSET, BASE_OFFSET + 10 * ENTRIES) for _ in range(2000)]
    offsets += [BASE_OFFSET, BASE_OFFSET + 8, BASE_OFFSET + 9, BASE_OFFSET + 10 * ENTRIES - 1]

    assert [index.lookup(offset) for offset in offsets] == [entry_for(offset) for offset in offsets]


def test_ascending_look_ups(index: OffsetIndex) -> None:
    offsets = range(BASE_OFFSET, BASE_OFFSET + 10 * ENTRIES, 10)

    assert [index.lookup(offset) for offset in offsets] == [entry_for(offset) for offset in offsets]


def test_look_ups_of_several_readers_at_different_places(index: OffsetIndex) -> None:
    part = 10 * ENTRIES // 6  # more readers than blocks in memory
    for offset in range(BASE_OFFSET, BASE_OFFSET + part, 10):
        for reader in range(6):
            assert index.lookup(offset + reader * part) == entry_for(offset + reader * part)


def test_an_entry_appended_after_a_look_up_is_found(index: OffsetIndex) -> None:
    end = BASE_OFFSET + 10 * ENTRIES
    assert index.lookup(end + 9) == entry_for(end - 1)
    index.append(end + 9, 1000 * ENTRIES)
    assert index.lookup(end + 9) == (end + 9, 1000 * ENTRIES)


class _CountingFiles(OsFiles):
    """Counts the reads."""

    reads = 0

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        self.reads += 1
        return super().pread(descriptor, length, position)


def test_a_finished_index_is_read_once(index: OffsetIndex) -> None:
    files = _CountingFiles()
    index.trim()
    finished = OffsetIndex(index.path, BASE_OFFSET, DescriptorCache(files), 8 * 2 * ENTRIES, index.size)
    offsets = [random.Random(1).randrange(BASE_OFFSET, BASE_OFFSET + 10 * ENTRIES) for _ in range(200)]

    assert [finished.lookup(offset) for offset in offsets] == [entry_for(offset) for offset in offsets]
    assert files.reads == 1


def test_a_finished_index_that_is_truncated_and_grows_again(index: OffsetIndex) -> None:
    last = BASE_OFFSET + 10 * ENTRIES - 1
    index.trim()
    assert index.lookup(last) == entry_for(last)

    index.truncate_to(last)
    assert index.lookup(last) == entry_for(last - 10)

    index.append(last - 5, 1000 * ENTRIES)
    assert index.lookup(last) == (last - 5, 1000 * ENTRIES)


def test_a_finished_index_that_another_process_has_cut(index: OffsetIndex, tmp_path: Path) -> None:
    index.trim()
    (tmp_path / "0.index").write_bytes(b"")
    with pytest.raises(CorruptIndexError, match="ends before its entry"):
        index.lookup(BASE_OFFSET)


@pytest.mark.parametrize("kept", [0, 1, 2000, ENTRIES - 1])
def test_truncated_entries_are_not_found(index: OffsetIndex, kept: int) -> None:
    last = BASE_OFFSET + 10 * ENTRIES - 1
    assert index.lookup(last) == entry_for(last)

    index.truncate_to(BASE_OFFSET + 10 * kept)
    assert index.lookup(last) == entry_for(BASE_OFFSET + 10 * kept - 1)

    index.append(last - 5, 1000 * ENTRIES)
    assert index.lookup(last) == (last - 5, 1000 * ENTRIES)
