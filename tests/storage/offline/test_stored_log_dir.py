"""Opening a log directory without changing it, compared with what Kafka's clients read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.broker.storage import StoredLogDir, open_log_dir
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.protocol.codec import encode
from odradek.protocol.stored_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.storage.logs import NOW, TOPIC_ID, append, batch, marker
from tests.storage.logs import open_log_dir as open_for_writing
from tests.storage.test_golden import HERE, TOPICS, expected, row

GARBAGE = bytes(range(256)) * 3

State = dict[str, tuple[int, int, bytes]]


def state_of(path: Path) -> State:
    """Everything there is to change in a tree: names, modes, times of change, bytes."""
    return {
        str(each.relative_to(path)): (
            each.stat().st_mode,
            each.stat().st_mtime_ns,
            b"" if each.is_dir() else each.read_bytes(),
        )
        for each in (path, *path.rglob("*"))
    }


def spoil_nothing(path: Path) -> None:
    (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')


def spoil_marker(path: Path) -> None:
    """As after a kill: there is none."""


def remove_indexes(path: Path) -> None:
    spoil_nothing(path)
    for index in path.glob("*/*.*index"):
        if index.suffix != ".txnindex":
            index.unlink()


def fill_indexes_with_garbage(path: Path) -> None:
    spoil_nothing(path)
    for index in path.glob("*/*.*index"):
        if index.suffix != ".txnindex":
            index.write_bytes(GARBAGE)


def spoil_everything_derived(path: Path) -> None:
    for derived in (*path.glob("*/*.*index"), *path.glob("*/*.snapshot"), *path.glob("*/leader-epoch-checkpoint")):
        derived.write_bytes(GARBAGE)
    for checkpoint in path.glob("*-checkpoint"):
        checkpoint.write_bytes(GARBAGE)


def leave_things_lying_about(path: Path) -> None:
    directory = path / "rolled-0"
    (directory / "00000000000000000500.log.cleaned").write_bytes(b"half")
    (directory / "00000000000000000007.index.deleted").write_bytes(b"")
    shutil.copy(directory / "00000000000000000000.log", directory / "00000000000000000000.log.swap")
    shutil.copytree(directory, path / ("gone-0." + "0" * 32 + "-delete"))
    with max(directory.glob("*.log")).open("ab") as log:
        log.write(bytes(batch(b"torn"))[:50])


SPOILERS = [
    spoil_nothing,
    spoil_marker,
    remove_indexes,
    fill_indexes_with_garbage,
    spoil_everything_derived,
    leave_things_lying_about,
]


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))


def look_at_everything(log_dir: StoredLogDir) -> None:
    for topic in TOPICS:
        stored = log_dir.partitions[topic, 0]
        wanted = expected(f"{topic}.records")
        found = [row(record, wanted[0]["timestamp_type"]) for record in stored.records()]
        assert found == wanted, topic
        one = wanted[len(wanted) // 2]
        if topic != "transactional":  # there a marker, which is no record of a consumer's, is the first that is as new
            first = next(each for each in wanted if each["timestamp"] >= one["timestamp"])
            assert stored.offset_for_timestamp(one["timestamp"]) == (first["timestamp"], first["offset"], 0)
        assert [r.offset for r in stored.records(one["offset"], one["offset"] + 1)] == [one["offset"]]
    committed = log_dir.partitions["transactional", 0].records(decided_only=True)
    assert [row(record, 1) for record in committed] == expected("transactional.read_committed")
    (producer,) = log_dir.partitions["idempotent", 0].producers
    assert (producer.epoch, producer.last_sequence, producer.last_offset) == (0, 99, 99)
    assert len(log_dir.partitions["rolled", 0].segments) == 2


@pytest.mark.parametrize("spoil", SPOILERS)
def test_everything_is_read_and_no_file_changes(golden: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(golden)
    before = state_of(golden)
    with open_log_dir(golden) as log_dir:
        look_at_everything(log_dir)
    assert state_of(golden) == before


@pytest.mark.parametrize("spoil", [spoil_nothing, spoil_everything_derived])
def test_a_read_only_tree_can_be_opened(golden: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(golden)
    everything = [golden, *golden.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with open_log_dir(golden) as log_dir:
            look_at_everything(log_dir)
    finally:
        for path in everything:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_the_lock_is_neither_taken_nor_required(tmp_path: Path) -> None:
    broker = open_for_writing(tmp_path)
    append(broker.create_log("t", 0, TOPIC_ID, LogConfig()), b"a", b"b")
    with open_log_dir(tmp_path) as log_dir:
        assert [record.value for record in log_dir.partitions["t", 0].records()] == [b"a", b"b"]
        assert not log_dir.was_clean
        with pytest.raises(LogDirRefusedError, match="another broker"):
            open_log_dir(tmp_path, read_only=False)
    append(broker.logs["t", 0], b"c")
    broker.close()
    with open_log_dir(tmp_path) as log_dir:
        assert log_dir.was_clean
        assert log_dir.meta is not None
        assert log_dir.partitions["t", 0].log_end_offset == 3


def test_opened_for_writing_it_is_left_as_by_a_clean_stop(golden: Path) -> None:
    (golden / "rolled-0" / "00000000000000000000.index").unlink()
    with open_log_dir(golden, read_only=False) as log_dir:
        assert not log_dir.was_clean
    with open_log_dir(golden) as log_dir:
        assert log_dir.was_clean


def test_another_directory_is_rejected_and_not_changed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_log_dir(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LogDirRefusedError, match=r"meta\.properties"):
        open_log_dir(tmp_path, read_only=False)
    with open_log_dir(tmp_path) as log_dir:
        assert (log_dir.partitions, log_dir.meta) == ({}, None)
    assert list(tmp_path.iterdir()) == []


def test_committed_offsets_are_those_that_kafka_stored(golden: Path) -> None:
    with open_log_dir(golden) as log_dir:
        committed = log_dir.committed_offsets()
    # The first consumer stopped half way; the other is the one that wrote down what is expected, to the end.
    assert {group: len(offsets) for group, offsets in committed.items()} == {"golden-group": 1, "x": len(TOPICS)}
    assert committed["golden-group"]["codec-none", 0] == (150, -1, "", 1795242218527)
    assert (committed["x"]["rolled", 0].offset, committed["x"]["compacted", 0].leader_epoch) == (20000, 0)


def commit(group: str, partition: int, offset: int | None) -> tuple[bytes, bytes | None]:
    key = b"\0\1" + bytes(encode(OffsetCommitKey(group=group, topic="t", partition=partition), 0))
    value = None if offset is None else b"\0\4" + bytes(encode(OffsetCommitValue(offset=offset, metadata="m"), 4))
    return key, value


def test_only_decided_commits_count(tmp_path: Path) -> None:
    broker = open_for_writing(tmp_path)
    log = broker.create_log("__consumer_offsets", 0, TOPIC_ID, LogConfig())

    def write(group: str, offset: int | None, partition: int = 0, producer_id: int = -1) -> None:
        key, value = commit(group, partition, offset)
        fields = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True} if producer_id >= 0 else {}
        log.append_as_leader(batch(value, key=key, **fields), 0, NOW, Origin.COORDINATOR)

    write("plain", 1)
    write("plain", 2)
    write("plain", 7, partition=1)
    write("taken back", 5)
    write("taken back", None)
    write("committed", 10, producer_id=1)
    log.append_as_leader(marker(1, 0, commit=True), 0, NOW, Origin.COORDINATOR)
    write("aborted", 11, producer_id=1)
    write("plain", 3)
    log.append_as_leader(marker(1, 0, commit=False), 0, NOW, Origin.COORDINATOR)
    write("open", 12, producer_id=2)
    write("after", 13)
    append(log, b"value", key=b"\0\1\0")
    append(log, b"value", key=b"\0\2 of another type")
    broker.close()
    with open_log_dir(tmp_path) as log_dir:
        committed = log_dir.committed_offsets()
    assert {group: {key[1]: each.offset for key, each in offsets.items()} for group, offsets in committed.items()} == {
        "after": {0: 13},
        "committed": {0: 10},
        "plain": {0: 3, 1: 7},
    }
    assert committed["after"]["t", 0].metadata == "m"
