"""Several log directories: the choice of one, their identities, the failure of one."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
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
from tests.storage.logs import NODE, NOW, OTHER_ID, TOPIC_ID, append, values_of

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
    assert sorted(index for _, index in log_dirs.logs) == [4, 5, 6, 7, 8]
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
    with pytest.raises(LogDirRefusedError, match=r"t-0 of topic id \S+ is in two .*, though both end alike$"):
        opened(tmp_path)
    shutil.rmtree(tmp_path / "c" / "t-0")
    opened(tmp_path).close()


@pytest.mark.parametrize("newer", ["a", "c"])
def test_the_message_of_two_directories_of_one_id_says_which_is_older(tmp_path: Path, newer: str) -> None:
    older = "c" if newer == "a" else "a"
    log_dirs = opened(tmp_path)
    append(log_dirs.create_log("t", 0, TOPIC_ID, CONFIG), b"x", leader_epoch=3)
    log_dirs.close()
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "c" / "t-0")
    (tmp_path / older / "t-0").rename(tmp_path / "kept")
    log_dirs = opened(tmp_path)
    append(log_dirs.logs["t", 0], b"y", leader_epoch=4)
    log_dirs.close()
    (tmp_path / "kept").rename(tmp_path / older / "t-0")

    with pytest.raises(LogDirRefusedError) as refused:
        opened(tmp_path)

    text = str(refused.value)
    newest, oldest = f"{tmp_path}/{newer}/t-0 (leader epoch 4, ", f"{tmp_path}/{older}/t-0 (leader epoch 3, "
    assert (
        0 < text.index(newest + "start offset 0, end offset 2)") < text.index(oldest + "start offset 0, end offset 1)")
    )
    assert text.endswith("Move one of them away, probably the second, which has the older records")


IDS = (TOPIC_ID, OTHER_ID, bytes(15) + b"3")


@pytest.fixture
def namesakes(tmp_path: Path) -> Path:
    """Directories with one log each of three topics of one name; the record is the directory's name."""
    for name, topic_id in zip("abc", IDS, strict=True):
        log_dirs = opened(tmp_path / "apart", name)
        append(log_dirs.create_log("t", 0, topic_id, CONFIG), name.encode())
        log_dirs.close()
    for name in "bc":
        shutil.copy(tmp_path / "apart" / "a" / "meta.properties", tmp_path / "apart" / name / "meta.properties")
    return tmp_path / "apart"


@pytest.mark.parametrize("living", range(3))
def test_topic_ids_decide_between_logs_of_one_name(namesakes: Path, living: int) -> None:
    log_dirs = opened(namesakes)
    assert len(log_dirs.every_log()) == 3

    log = log_dirs.find("t", 0, IDS[living])
    log_dirs.retire_namesakes(deleted={IDS[(living + 1) % 3]})

    assert log is not None
    assert log_dirs.every_log() == [log]
    assert log_dirs.logs["t", 0] is log
    assert values_of(log) == [b"abc"[living : living + 1]]
    assert log_dirs.directory_of("t", 0) is log_dirs.directories[living]
    assert [len(each.logs) for each in log_dirs.directories] == [int(index == living) for index in range(3)]
    found = sorted(each.name.rpartition("-")[2] for name in "abc" for each in (namesakes / name).glob("t-0*"))
    assert found == ["0", "delete", "stray"]
    log_dirs.close()


def test_a_log_of_an_unknown_id_gets_the_place_of_none(namesakes: Path) -> None:
    log_dirs = opened(namesakes)
    assert log_dirs.find("t", 0, bytes(16)) is log_dirs.logs["t", 0]
    assert log_dirs.directory_of("t", 0) is log_dirs.first
    assert log_dirs.find("u", 0, TOPIC_ID) is None
    log_dirs.close()


def test_the_next_log_of_a_name_takes_the_place_of_one_that_is_removed(namesakes: Path) -> None:
    log_dirs = opened(namesakes)
    for removed in range(3):
        assert log_dirs.logs["t", 0].topic_id == IDS[removed]
        if removed == 1:
            log_dirs.set_log_aside("t", 0)
        else:
            log_dirs.delete_log("t", 0)
    assert log_dirs.logs == {}
    made = log_dirs.create_log("t", 0, bytes(15) + b"4", CONFIG)
    assert log_dirs.every_log() == [made]
    log_dirs.close()


@pytest.mark.parametrize("retire", [LogDirs.delete_log, LogDirs.set_log_aside])
def test_the_name_of_a_log_in_a_failed_directory_is_free_when_it_is_removed(
    tmp_path: Path, retire: Callable[[LogDirs, str, int], object]
) -> None:
    log_dirs = opened(tmp_path)
    log_dirs.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log_dirs.create_log("t", 1, TOPIC_ID, CONFIG), b"old")
    log_dirs.directories[1].failure.fail("testing", FAILURE)

    with pytest.raises(KafkaError) as refused:
        retire(log_dirs, "t", 1)
    made = log_dirs.create_log("t", 1, OTHER_ID, CONFIG)

    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log_dirs.directory_of("t", 1) is log_dirs.directories[2]
    assert log_dirs.logs["t", 1] is made
    log_dirs.close()
    log_dirs = opened(tmp_path)
    assert log_dirs.find("t", 1, OTHER_ID) is not None
    log_dirs.retire_namesakes(deleted=())
    assert [log.topic_id for log in log_dirs.every_log()] == [TOPIC_ID, OTHER_ID]
    log_dirs.close()


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
