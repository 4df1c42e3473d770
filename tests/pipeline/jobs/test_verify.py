"""`verify` in tasks finds the same problems as `python -m broker verify`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.verification import Outcome, Verification
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.offline.listing import list_partitions
from odradek.pipeline.jobs.log_directories.log_parts import parts_of
from odradek.pipeline.jobs.log_directories.task_shares import divide
from odradek.pipeline.jobs.verify import verify
from tests.storage.logs import NOW, TOPIC_ID, append, marker, open_log_dir
from tests.storage.test_golden import HERE


def test_shares_have_about_one_size_and_contain_each_item_once() -> None:
    sized = [(size, (f"t-{size}",)) for size in (1, 2, 3, 4, 5, 6, 100)]
    shares = divide(sized, 3)
    assert shares[0] == [("t-100",)]
    assert sorted(name for share in shares for name in share) == sorted(name for _, name in sized)
    assert [sum(int(name[2:]) for (name,) in share) for share in shares[1:]] == [11, 10]
    assert divide(sized[:1], 5) == [[("t-1",)]]


@pytest.fixture
def parted(tmp_path: Path) -> Path:
    """A partition of many segments, with transactions and leader epochs that cross the borders of segments."""
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
    log_dir = open_log_dir(tmp_path / "logs", config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    for number in range(200):
        append(log, b"x" * (10 * number), leader_epoch=number // 50)
        fields = {
            "producer_id": number % 3,
            "producer_epoch": 0,
            "base_sequence": number // 3,
            "is_transactional": True,
        }
        append(log, b"y", leader_epoch=number // 50, **fields)
        if number % 30 < 3:
            log.append_as_leader(marker(number % 3, 0, commit=number % 2 == 0), number // 50, NOW, Origin.COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)
    assert log.segments_count > 10
    log_dir.close()
    return tmp_path / "logs"


def test_a_large_partition_is_divided_between_segments(parted: Path) -> None:
    (partition,) = list_partitions(ReadOnlyFiles(), str(parted))
    ((_, whole),) = parts_of(partition, partition.size)
    assert whole.base_offsets == ()
    parts = list(parts_of(partition, 60_000))
    assert sum(size for size, _ in parts) == partition.size
    assert all(size <= 60_000 for size, _ in parts)
    assert [base for _, part in parts for base in part.base_offsets] == sorted(partition.segments)
    assert len(list(parts_of(partition, 1))) == len(partition.segments)


@pytest.mark.spark
@pytest.mark.parametrize(
    "spoil", ["nothing", "transaction indexes", "a segment twice", "every third segment", "epochs", "checksums"]
)
def test_parts_together_find_what_one_process_finds(spark: SparkSession, parted: Path, spoil: str) -> None:
    directory = parted / "t-0"
    logs = sorted(directory.glob("*.log"))
    if spoil == "transaction indexes":
        for index in directory.glob("*.txnindex"):
            index.unlink()
    elif spoil == "a segment twice":
        (directory / f"{int(logs[5].stem) + 1:020d}.log").write_bytes(logs[5].read_bytes())
    elif spoil == "every third segment":
        for log in logs[2::3]:
            for file in directory.glob(f"{log.stem}.*"):
                file.unlink()
    elif spoil == "epochs":
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    elif spoil == "checksums":
        for log in logs[::3]:
            data = bytearray(log.read_bytes())
            data[100] ^= 1
            log.write_bytes(data)
    found = verify(spark, str(parted), 30_000)
    assert found == _found_by_one_process(parted)
    assert bool(found[1]) == (spoil != "nothing")


@pytest.mark.spark
def test_the_job_finds_what_the_broker_verify_finds(spark: SparkSession, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))
    for share_bytes in (None, 1):
        assert verify(spark, str(directory), share_bytes) == _found_by_one_process(directory)
    logs = sorted(log for log in directory.glob("*/*.log") if log.stat().st_size > 500)
    flipped, torn = logs[0], logs[-1]
    data = bytearray(flipped.read_bytes())
    data[100] ^= 1
    flipped.write_bytes(data)
    torn.write_bytes(torn.read_bytes()[:-7])
    (directory / "recovery-point-offset-checkpoint").write_text("0\n1\nnonsense\n")
    outcome, problems = verify(spark, str(directory), 1)
    assert (outcome, problems) == verify(spark, str(directory)) == _found_by_one_process(directory)
    assert {problem.path for problem in problems} >= {
        str(flipped.relative_to(directory)),
        str(torn.relative_to(directory)),
        "recovery-point-offset-checkpoint",
    }


def _found_by_one_process(directory: Path) -> tuple[Outcome, list[Problem]]:
    problems: list[Problem] = []
    outcome = Verification(str(directory), problems.append, lambda done, total: None).run()
    return outcome, problems
