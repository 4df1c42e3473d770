"""A log directory: its lock and identity, clean stops, creation and deletion of logs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir, LogDirRefusedError
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import (
    CLUSTER,
    NODE,
    OTHER_ID,
    TOPIC_ID,
    append,
    make_log_dir,
    open_files,
    open_log_dir,
    values_of,
)


def contents_of(directory: Path) -> dict[str, tuple[int, bytes]]:
    """The modification time and the contents of each file."""
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}


# ------------------------------------------------------------------------------------------------------------- identity


def test_an_empty_directory_is_formatted(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "a" / "b")
    log_dir.open(lambda _: LogConfig(), node_id=7)
    meta = log_dir.meta
    log_dir.close()
    lines = (tmp_path / "a" / "b" / "meta.properties").read_text().splitlines()
    assert lines == [
        "#",
        "node.id=7",
        f"directory.id={meta.directory_id}",
        "version=1",
        f"cluster.id={meta.cluster_id}",
    ]
    assert len(meta.directory_id) == len(meta.cluster_id) == 22
    again = make_log_dir(tmp_path / "a" / "b")
    again.open(lambda _: LogConfig(), node_id=7)
    assert again.meta == meta
    again.close()


def test_another_nodes_directory_is_refused_with_both_ids(tmp_path: Path) -> None:
    open_log_dir(tmp_path).close()
    other = make_log_dir(tmp_path)
    with pytest.raises(LogDirRefusedError, match=rf"node {NODE}\b.*node 99"):
        other.open(lambda _: LogConfig(), node_id=99, cluster_id=CLUSTER)
    with pytest.raises(LogDirRefusedError, match=rf"cluster {CLUSTER}\b.*cluster another"):
        other.open(lambda _: LogConfig(), node_id=NODE, cluster_id="another")
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    open_log_dir(tmp_path).close()


def test_a_second_broker_is_refused(tmp_path: Path) -> None:
    first = open_log_dir(tmp_path)
    with pytest.raises(LogDirRefusedError, match="another broker"):
        open_log_dir(tmp_path)
    first.close()
    open_log_dir(tmp_path).close()


@pytest.mark.parametrize(
    "text", ["", "version=1", "version=2\nnode.id=1\ncluster.id=x", "version=1\nnode.id=x\ncluster.id=x"]
)
def test_a_damaged_identity_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(MalformedFileError):
        open_log_dir(tmp_path)
    assert open_files(tmp_path) == []


# ----------------------------------------------------------------------------------------------------------- clean stop


def test_a_clean_stop_and_start(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path, LogConfig(segment_bytes=200))
    assert not log_dir.was_clean
    log = log_dir.create_log("topic-with-dashes", 3, TOPIC_ID, LogConfig(segment_bytes=200))
    for index in range(6):
        append(log, b"%d" % index, leader_epoch=index // 2, producer_id=5, producer_epoch=1, base_sequence=index)
    log.advance_high_watermark(5)
    log.update_log_start_offset(1)
    log_dir.broker_epoch = 17
    log_dir.close()
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 17}
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\ntopic-with-dashes 3 6\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\ntopic-with-dashes 3 5\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\ntopic-with-dashes 3 1\n"
    assert open_files(tmp_path) == []

    again = open_log_dir(tmp_path, LogConfig(segment_bytes=200))
    assert (again.was_clean, again.last_broker_epoch) == (True, 17)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    log = again.logs["topic-with-dashes", 3]
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.recovery_point) == (1, 5, 6, 6)
    assert (log.topic_id, log.latest_leader_epoch, log.end_offset_for_epoch(1)) == (TOPIC_ID, 2, (1, 4))
    assert values_of(log) == [b"1", b"2", b"3", b"4", b"5"]
    assert append(log, b"6", producer_id=5, producer_epoch=1, base_sequence=6) == 6
    again.close()


class WatchedFiles(OsFiles):
    """The real file system, and a list of what was opened in it."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: str, *, create: bool = False) -> int:
        self.opened.append(path)
        return super().open(path, create=create)


def test_a_clean_start_opens_no_file_of_any_segment(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    for partition in range(5):
        append(log_dir.create_log("t", partition, TOPIC_ID, LogConfig()), b"a")
    log_dir.close()
    files = WatchedFiles()
    log_dir = open_log_dir(tmp_path, files=files)
    assert files.opened == []
    assert [log.log_end_offset for log in log_dir.logs.values()] == [1] * 5
    assert values_of(log_dir.logs["t", 0]) == [b"a"]
    assert {path.rpartition("/")[0] for path in files.opened} == {f"{tmp_path}/t-0"}
    log_dir.close()


def test_opening_keeps_only_the_lock_open(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    for partition in range(20):
        append(log_dir.create_log("t", partition, TOPIC_ID, LogConfig()), b"a")
    log_dir.close()
    log_dir = open_log_dir(tmp_path)
    assert open_files(tmp_path) == [str(tmp_path / ".lock")]
    assert [log.log_end_offset for log in log_dir.logs.values()] == [1] * 20
    log_dir.close()


def test_open_files_are_bounded(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path, max_open_files=6)
    for _ in range(3):
        for partition in range(10):
            append(log_dir.create_log("t", partition, TOPIC_ID, LogConfig()), b"a")
            assert len(open_files(tmp_path)) <= 7  # and the lock
    for log in log_dir.logs.values():
        assert values_of(log) == [b"a"] * 3
    log_dir.close()


def test_closing_an_unchanged_log_writes_nothing(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    append(log_dir.create_log("t", 0, TOPIC_ID, LogConfig()), b"a")
    log_dir.close()
    before = contents_of(tmp_path / "t-0")
    log_dir = open_log_dir(tmp_path)
    assert values_of(log_dir.logs["t", 0]) == [b"a"]
    log_dir.close()
    assert contents_of(tmp_path / "t-0") == before


def test_checkpoints_while_running(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    append(log, b"a")
    log.flush()
    append(log, b"b")
    log.advance_high_watermark(2)
    log_dir.checkpoint()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    log_dir.close()


# ------------------------------------------------------------------------------------------------ creation and deletion


def test_creating_a_log_twice(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    assert log_dir.create_log("t", 0, TOPIC_ID, LogConfig()) is log
    with pytest.raises(KafkaError) as error:
        log_dir.create_log("t", 0, OTHER_ID, LogConfig())
    assert error.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    log_dir.close()


def test_other_directories_are_left_alone_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("no partition", "t-x", "__cluster_metadata-0", "t-0.abc-future", "-1"):
        (tmp_path / name).mkdir()
    (tmp_path / "t-5").write_text("a file")
    with caplog.at_level(logging.WARNING):
        log_dir = open_log_dir(tmp_path)
    assert log_dir.logs == {}
    assert len([r for r in caplog.records if "leaving" in r.message]) == 5
    log_dir.close()
    assert (tmp_path / "t-0.abc-future").exists()


def test_a_closed_directory_can_be_closed_again(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    log_dir.close()
    log_dir.close()
    assert isinstance(log_dir, LogDir)
    assert log_dir.logs == {}


def test_a_recovery_point_that_does_not_fit_the_segments_is_ignored(tmp_path: Path) -> None:
    """Its last segment is empty, as after a roll, so that no batch shows its end."""
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    append(log, b"a", b"b")
    log.roll()
    log_dir.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 0\n")
    log_dir = open_log_dir(tmp_path)
    assert log_dir.logs["t", 0].log_end_offset == 2
    log_dir.close()


def test_two_directories_of_one_partition_are_refused_by_name(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    log_dir.close()
    (tmp_path / "t-00").mkdir()
    with pytest.raises(LogDirRefusedError, match=r"/t-0 and .*/t-00 are both partition 0 of topic t"):
        open_log_dir(tmp_path)
