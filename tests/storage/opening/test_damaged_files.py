"""Recovery of a log directory with damaged indexes, snapshots, checkpoints and segments."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import SEGMENT_SUFFIXES
from odradek.protocol.errors import KafkaError
from tests.effort import some
from tests.storage.logs import NOW, TOPIC_ID, append, marker, open_log_dir, values_of
from tests.storage.opening.filled_logs import (
    CONFIG,
    COUNT,
    assert_works_on,
    fill,
    reopened,
    segment_files,
)


def garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 3)


def odd_size(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\1\2\3")


def zeros_behind(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(1200))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def ones(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def shifted(path: Path) -> None:
    """Entries that look right in themselves and point between the batches."""
    data = bytearray(path.read_bytes())
    for at in range(4, len(data) - 3, 8):
        (position,) = struct.unpack_from(">i", data, at)
        struct.pack_into(">i", data, at, position + 7)
    path.write_bytes(data)


DAMAGES: list[Callable[[Path], None]] = [
    Path.unlink,
    garbage,
    odd_size,
    zeros_behind,
    cut_short,
    emptied,
    ones,
    shifted,
]


@pytest.mark.parametrize(
    ("damage", "suffix", "clean"), some([*product(DAMAGES, [".index", ".timeindex", ".snapshot"], [True, False])])
)
def test_damaged_indexes_and_snapshots_are_rebuilt(
    tmp_path: Path, damage: Callable[[Path], None], suffix: str, clean: bool
) -> None:
    values = fill(tmp_path, flushed=13)
    if clean:
        open_log_dir(tmp_path, CONFIG).close()
    damaged = segment_files(tmp_path, suffix)
    assert damaged
    for path in damaged:
        damage(path)
    log_dir, log = reopened(tmp_path)
    if not (clean and suffix == ".snapshot" and damage is Path.unlink):
        assert_works_on(log, values)
    else:  # as in Kafka: no snapshot after a clean stop says that nobody was idempotent
        assert values_of(log) == values
    log_dir.close()
    log_dir, log = reopened(tmp_path)
    assert values_of(log)[:COUNT] == values
    log_dir.close()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", [Path.unlink, garbage, emptied, cut_short], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "t-0/leader-epoch-checkpoint"],
)
def test_recovery_without_checkpoints_loses_nothing(
    tmp_path: Path, name: str, damage: Callable[[Path], None], clean: bool
) -> None:
    values = fill(tmp_path)
    if clean:
        open_log_dir(tmp_path, CONFIG).close()
    damage(tmp_path / name)
    log_dir, log = reopened(tmp_path)
    assert_works_on(log, values)
    log_dir.close()


@pytest.mark.parametrize(
    "text", ["", "x", "0\n", "0\n1\n", "1\n0\n", "0\n1\nt 0\n", "0\n1\nt 0 -5\n", "0\n1\nt 0 x\n", "\xff\xfe"]
)
def test_any_damaged_checkpoint_is_ignored(tmp_path: Path, text: str) -> None:
    values = fill(tmp_path)
    for path in tmp_path.glob("*-checkpoint"):
        path.write_text(text, encoding="latin-1")
    log_dir, log = reopened(tmp_path)
    assert values_of(log) == values
    assert log.high_watermark == 0
    log_dir.close()


def test_a_log_without_topic_id_is_opened(tmp_path: Path) -> None:
    values = fill(tmp_path)
    for text in ("", "version: 1\ntopic_id: x", "version: 0\ntopic_id: x"):
        (tmp_path / "t-0" / "partition.metadata").write_text(text)
        log_dir, log = reopened(tmp_path)
        assert (log.topic_id, values_of(log)) == (bytes(16), values)
        log_dir.close()


def test_offsets_that_go_back_end_the_log(tmp_path: Path) -> None:
    values = fill(tmp_path)
    path = segment_files(tmp_path, ".log")[-1]
    data = path.read_bytes()
    path.write_bytes(data + data)
    log_dir, log = reopened(tmp_path)
    assert_works_on(log, values)
    log_dir.close()


def test_a_segment_that_begins_before_the_end_of_the_one_before_is_dropped(tmp_path: Path) -> None:
    values = fill(tmp_path)
    directory = tmp_path / "t-0"
    first, second = segment_files(tmp_path, ".log")[:2]
    shutil.copy(second, directory / f"{int(second.stem) - 1:020d}.log")
    log_dir, log = reopened(tmp_path)
    assert_works_on(log, values[: int(second.stem)])
    assert int(first.stem) == 0
    log_dir.close()


def test_a_log_that_ends_before_its_start_after_a_clean_stop_is_emptied(tmp_path: Path) -> None:
    fill(tmp_path)
    reopened(tmp_path)[0].close()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 500\n")
    log_dir, log = reopened(tmp_path)
    assert (log.log_start_offset, log.log_end_offset, log.latest_leader_epoch) == (500, 500, -1)
    assert append(log, b"a") == 500
    log_dir.close()
    log_dir, log = reopened(tmp_path)
    assert values_of(log) == [b"a"]
    log_dir.close()


def test_an_index_without_a_log_is_removed(tmp_path: Path) -> None:
    values = fill(tmp_path)
    for suffix in SEGMENT_SUFFIXES[1:]:
        (tmp_path / "t-0" / f"{999:020d}{suffix}").write_bytes(b"12345678")
    log_dir, log = reopened(tmp_path)
    assert not list((tmp_path / "t-0").glob(f"{999:020d}*"))
    assert_works_on(log, values)
    log_dir.close()


def test_a_damaged_transaction_index_below_the_recovery_point_is_rebuilt(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=350)
    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    for index in range(6):
        append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=index, is_transactional=True)
        log.append_as_leader(marker(1, 0, commit=False), 0, NOW, Origin.COORDINATOR)
    aborted = log.aborted_transactions(0, 12)
    log_dir.close()
    for damaged in (b"garbage", b"\xff" * 34, b"\0" * 68):
        for path in segment_files(tmp_path, ".txnindex")[:-1]:
            path.write_bytes(damaged)
        log_dir, log = reopened(tmp_path, config)
        assert log.aborted_transactions(0, 12) == aborted
        log_dir.close()


def test_damage_found_while_reading_fails_only_the_read(tmp_path: Path) -> None:
    """A flipped bit in a batch's length, below the recovery point: that batch can not be found, other segments can."""
    values = fill(tmp_path, flushed=COUNT)
    path = segment_files(tmp_path, ".log")[0]
    data = bytearray(path.read_bytes())
    data[8] ^= 0x40
    path.write_bytes(data)
    log_dir, log = reopened(tmp_path)
    with pytest.raises(KafkaError):
        log.read(1, 1000, COUNT)
    base = int(segment_files(tmp_path, ".log")[1].stem)
    assert values_of(log, start=base) == values[base:]
    assert append(log, b"more", leader_epoch=2) == COUNT
    log_dir.close()
