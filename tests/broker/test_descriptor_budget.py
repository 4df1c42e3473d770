from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from odradek.broker.broker import Broker
from odradek.broker.descriptor_budget import descriptor_budget


def test_the_usual_limit_is_divided() -> None:
    assert descriptor_budget(1, 1024, 12) == (500, 1024 - 500 - 192 - 12)


def test_connections_get_most_of_a_large_limit() -> None:
    assert descriptor_budget(10, 1 << 20, 12) == (500, (1 << 20) - 10 * 500 - 192 - 12)


def test_files_get_a_quarter_of_a_larger_limit() -> None:
    assert descriptor_budget(1, 8192, 12) == (2048, 8192 - 2048 - 192 - 12)


@pytest.mark.parametrize("log_dirs", [1, 3, 4])
def test_all_log_directories_together_keep_a_bounded_number_of_files_open(log_dirs: int) -> None:
    assert descriptor_budget(log_dirs, 1 << 20, 12).files_per_log_dir == 2048 // log_dirs


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096])
@pytest.mark.parametrize("log_dirs", [1, 2, 8])
def test_files_have_half_of_the_limit_at_most_and_connections_fit_beside_them(limit: int, log_dirs: int) -> None:
    budget = descriptor_budget(log_dirs, limit, 10)
    assert budget.files_per_log_dir * log_dirs <= max(limit // 2, 8 * log_dirs)
    assert budget.connections >= 1
    if limit >= 256:
        assert budget.files_per_log_dir * log_dirs + budget.connections + min(128, limit // 8) <= limit


@pytest.mark.process
def test_the_process_of_a_broker_raises_its_soft_limit_to_the_hard_one() -> None:
    script = (
        "import resource\n"
        "from odradek.broker.descriptor_budget import raise_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 777))\n"
        "assert raise_limit() == (256, 777)\n"
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == (777, 777)\n"
        "assert raise_limit() == (777, 777)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_an_embedded_broker_leaves_the_limits_of_its_process_alone() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Broker():
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
