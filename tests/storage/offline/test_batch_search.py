"""The search for the next batch behind damage."""

from __future__ import annotations

import random

import pytest

from odradek.broker.storage.offline import batch_search
from odradek.broker.storage.offline.batch_search import find_next_batch
from tests.storage.logs import follower_batch

BATCH = follower_batch(b"x" * 50, b"y" * 50, base_offset=1000)


def find(data: bytes, start: int = 0, low: int = 1000, high: int = 1002) -> int | None:
    reads = []

    def read(length: int, position: int) -> bytes:
        reads.append(length)
        return data[position : position + length]

    found = find_next_batch(read, start, len(data), low, high)
    assert sum(reads) <= 3 * len(data) + (1 << 20)
    return found


@pytest.mark.parametrize("before", [1, 60, 61, 62, (1 << 20) - 61, (1 << 20) - 60, (1 << 20) - 1, 1 << 20, 2_500_000])
@pytest.mark.parametrize("of", ["zeros", "noise", "text"])
def test_a_batch_is_found_behind_any_bytes(before: int, of: str) -> None:
    noise = random.Random(before).randbytes(before)
    skipped = {"zeros": bytes(before), "noise": noise, "text": b"no batch " * (before // 9 + 1)}[of][:before]
    assert find(skipped + BATCH + b"more") == before


def test_the_search_begins_at_its_start() -> None:
    assert find(BATCH + BATCH, start=1) == len(BATCH)
    assert find(BATCH, start=1) is None


def test_a_batch_of_other_offsets_or_without_its_end_or_checksum_is_not_found() -> None:
    assert find(BATCH, low=1001, high=2000) is None
    assert find(BATCH, high=1001) is None
    assert find(BATCH[:-1]) is None
    assert find(BATCH[:-1] + b"z") is None
    assert find(b"") is None


def test_offsets_that_differ_in_high_bytes_are_found() -> None:
    offset = (1 << 40) + 5
    data = b"???" + follower_batch(b"x", base_offset=offset)
    assert find(data, low=(1 << 40) - 7, high=(1 << 40) + 6) == 3


def test_the_bytes_of_candidates_that_are_checked_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_search, "MOST_CHECKED", 10 * len(BATCH))
    wrong = BATCH[:-1] + b"z"
    assert find(wrong * 9 + BATCH) == 9 * len(BATCH)
    assert find(wrong * 10 + BATCH) is None
