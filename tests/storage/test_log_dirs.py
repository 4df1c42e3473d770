"""Several log directories: the choice of one, their identities, the failure of one."""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir, LogDirRefusedError
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import NODE, NOW, TOPIC_ID, append, values_of

CONFIG = LogConfig()
FAILURE = OSError(5, "Input/output error")


def opened(path: Path, *names: str, **options: Any) -> LogDirs:
    directories = [
        LogDir(path / name, clock=ManualClock(NOW), randomness=SystemRandomness()) for name in names or ("a", "b", "c")
    ]
    log_dirs = LogDirs(directories)
    log_dirs.open(lambda _: CONFIG, node_id=NODE, **options)
    return log_dirs


def places(log_dirs: LogDirs) -> dict[str, int]:
    return {each.path.name: len(each.logs) for each in log_dirs.directories}


def test_a_new_log_goes_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    for index in range(7):
        log_dirs.create_log("t", index, TOPIC_ID, CONFIG)
    assert places(log_dirs) == {"a": 3, "b": 2, "c": 2}
    for index in (1, 4):
        log_dirs.delete_log("t", index)
    assert places(log_dirs) == {"a": 3, "b": 0, "c": 2}
    log_dirs.create_log("u", 0, TOPIC_ID, CONFIG)
    assert log_dirs.directory_of("u", 0) is log_dirs.directories[1]
    log_dirs.close()


def test_logs_of_several_directories_are_deleted_together(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    for index in range(9):
        log_dirs.create_log("t", index, TOPIC_ID, CONFIG)
    broken = log_dirs.directory_of("t", 1)
    assert broken is not None
    broken.failure.fail("a test", FAILURE)

    outcomes = log_dirs.delete_logs([("t", index) for index in (0, 1, 2, 3, 10)])

    codes = [each.code if isinstance(each, KafkaError) else ErrorCode.NONE for each in outcomes]
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert sorted(index for _, index in log_dirs.logs) == [1, 4, 5, 6, 7, 8]
    log_dirs.close()


def test_logs_made_at_the_same_time_are_spread_as_well(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda index: log_dirs.create_log("t", index, TOPIC_ID, CONFIG), range(60)))
    assert Counter(places(log_dirs).values()) == {20: 3}
    log_dirs.close()


def test_each_has_its_own_identity_of_one_cluster(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    metas = [each.meta for each in log_dirs.directories]
    assert len({meta.cluster_id for meta in metas}) == 1
    assert len({meta.directory_id for meta in metas}) == len({each.path for each in log_dirs.directories}) == 3
    log_dirs.close()
    added = opened(tmp_path, "a", "b", "c", "d")
    assert [each.meta for each in added.directories][:3] == metas
    assert added.directories[3].meta.cluster_id == metas[0].cluster_id
    added.close()
    with pytest.raises(LogDirRefusedError, match="is of cluster"):
        opened(tmp_path, "a", "b", cluster_id="another")


def test_all_are_found_again_each_in_its_directory(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    for index in range(4):
        append(log_dirs.create_log("t", index, TOPIC_ID, CONFIG), b"%d" % index)
    log_dirs.checkpoint_high_watermarks()
    log_dirs.close()
    log_dirs = opened(tmp_path)
    assert all(each.was_clean for each in log_dirs.directories)
    assert {index: values_of(log_dirs.logs["t", index]) for index in range(4)} == {i: [b"%d" % i] for i in range(4)}
    assert places(log_dirs) == {"a": 2, "b": 1, "c": 1}
    log_dirs.close()


def test_a_partition_in_two_directories_is_rejected_and_all_are_unlocked(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    log_dirs.create_log("t", 0, TOPIC_ID, CONFIG)
    log_dirs.close()
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "c" / "t-0")
    with pytest.raises(LogDirRefusedError, match="t-0 is in two log directories"):
        opened(tmp_path)
    shutil.rmtree(tmp_path / "c" / "t-0")
    opened(tmp_path).close()


def test_a_failed_directory_does_not_block_the_others(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    logs = [log_dirs.create_log("t", index, TOPIC_ID, CONFIG) for index in range(3)]
    for log in logs:
        append(log, b"x")
    log_dirs.directories[1].failure.fail("testing", FAILURE)
    assert [each.path.name for each in log_dirs.offline] == ["b"]
    assert log_dirs.unsynced() == [logs[0], logs[2]]
    with pytest.raises(KafkaError) as refused:
        append(logs[1], b"y")
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    append(logs[2], b"y")
    log_dirs.checkpoint_recovery_points()
    log_dirs.checkpoint_log_start_offsets()
    log_dirs.checkpoint_high_watermarks()
    for index in range(3, 7):
        assert log_dirs.create_log("t", index, TOPIC_ID, CONFIG).directory.parent.name != "b"
    log_dirs.close()
    log_dirs = opened(tmp_path)
    assert [each.was_clean for each in log_dirs.directories] == [True, False, True]
    assert values_of(log_dirs.logs["t", 1]) == [b"x"]
    log_dirs.close()


def test_a_directory_that_cannot_be_opened_is_offline_unless_it_is_the_first(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for name in ("a", "b"):
        (tmp_path / name).rename(tmp_path / f"{name} elsewhere")
        (tmp_path / name).write_text("no directory")
    with pytest.raises(OSError, match="a"):
        opened(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "a elsewhere").rename(tmp_path / "a")
    log_dirs = opened(tmp_path)
    assert [each.path.name for each in log_dirs.online] == ["a", "c"]
    log_dirs.close()


def test_no_log_is_created_without_a_directory(tmp_path: Path) -> None:
    log_dirs = opened(tmp_path)
    for each in log_dirs.directories:
        each.failure.fail("testing", FAILURE)
    with pytest.raises(KafkaError, match="all log directories have failed"):
        log_dirs.create_log("t", 0, TOPIC_ID, CONFIG)
    log_dirs.close()
