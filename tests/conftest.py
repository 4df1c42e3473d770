"""What every test gets: the hypothesis profile of the machine that it runs on, and a Ctrl-C that works."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# Shared machines stall; a deadline would then fail a test that is right. In CI the seed is fixed, so that a red build
# is red again when it is repeated, and more is tried than at a desk.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=200,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# A shell starts what runs in the background with Ctrl-C ignored, and the programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server",
        choices=("odradek", "apache"),
        default=os.environ.get("SERVER", "odradek"),
        help="the server that the interop tests run against; apache proves that they expect Kafka's behaviour",
    )


class FilesInTurn(LoadScopeScheduling):
    """The tests of a file stay in one worker, for they share servers; all of the pipeline's, for they share Spark."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        return "tests/pipeline" if path.startswith("tests/pipeline/") else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FilesInTurn:
    return FilesInTurn(config, log)
