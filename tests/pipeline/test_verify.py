"""`verify` over tasks finds what `python -m broker verify` finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker.inspection.problem import Problem
from broker.inspection.verification import Outcome, Verification
from pipeline.jobs.shares import shared_out
from pipeline.jobs.verify import verify
from tests.storage.test_golden import HERE


def test_shares_are_of_about_the_same_size_and_hold_everything_once() -> None:
    sized = [(size, (f"t-{size}",)) for size in (1, 2, 3, 4, 5, 6, 100)]
    shares = shared_out(sized, 3)
    assert shares[0] == [("t-100",)]
    assert sorted(name for share in shares for name in share) == sorted(name for _, name in sized)
    assert [sum(int(name[2:]) for (name,) in share) for share in shares[1:]] == [11, 10]
    assert shared_out(sized[:1], 5) == [[("t-1",)]]


@pytest.mark.spark
def test_it_finds_what_the_broker_s_own_verify_finds(spark: SparkSession, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))
    assert verify(spark, str(directory)) == _found_by_one_process(directory)
    logs = sorted(log for log in directory.glob("*/*.log") if log.stat().st_size > 500)
    flipped, torn = logs[0], logs[-1]
    data = bytearray(flipped.read_bytes())
    data[100] ^= 1
    flipped.write_bytes(data)
    torn.write_bytes(torn.read_bytes()[:-7])
    (directory / "recovery-point-offset-checkpoint").write_text("0\n1\nnonsense\n")
    outcome, problems = verify(spark, str(directory))
    assert (outcome, problems) == _found_by_one_process(directory)
    assert {problem.path for problem in problems} >= {
        str(flipped.relative_to(directory)),
        str(torn.relative_to(directory)),
        "recovery-point-offset-checkpoint",
    }


def _found_by_one_process(directory: Path) -> tuple[Outcome, list[Problem]]:
    problems: list[Problem] = []
    outcome = Verification(str(directory), problems.append, lambda done, total: None).run()
    return outcome, problems
