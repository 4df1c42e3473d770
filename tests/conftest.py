"""Set-up of every test: the hypothesis profile, a working Ctrl-C, and the check of the marker `process`."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.eager_tasks import make_tasks_eager_if_wanted, ordinary_task

pytest_plugins = ["pytester", "odradek.testing.plugin"]

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
settings.register_profile("fast", deadline=None, max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# A shell starts what runs in the background with Ctrl-C ignored, and the programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

make_tasks_eager_if_wanted()


@pytest.fixture
async def ordinary_tasks() -> None:
    """For programs that fail with eager tasks: aiokafka 0.14 starts a group's task before what that uses is there."""
    asyncio.get_running_loop().set_task_factory(ordinary_task)


MAY_START_PROCESSES = {"process", "interop", "java", "crash", "spark", "fuzz"}
"""Markers of tests that may start processes; `make test-fast` runs all other tests."""
_STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
_started: list[str] = []


def _record_process(event: str, _arguments: tuple[object, ...]) -> None:
    if event in _STARTS_A_PROCESS:
        _started.append(event)


sys.addaudithook(_record_process)


def _check_processes(item: pytest.Item) -> Generator[None]:
    _started.clear()
    yield
    if _started and not MAY_START_PROCESSES & {marker.name for marker in item.iter_markers()}:
        pytest.fail(f"this test starts a process ({_started[0]}) without the marker `process`", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    yield from _check_processes(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield from _check_processes(item)
    left = sys.exc_info()[1]  # only what is compiled can leave one: see tests/test_compiled_modules.py
    if left is not None:
        pytest.fail(f"this test leaves {left!r} as the exception that the thread handles", pytrace=False)


@pytest.fixture(autouse=True)
def _collect_what_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect garbage at the end of each test that may start processes.

    A process or a socket that such a test has left is then reported as its error, not as that of a later test.
    """
    yield
    if MAY_START_PROCESSES & {marker.name for marker in request.node.iter_markers()}:
        gc.collect()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start the longest files first in several workers: those with Spark, then those that start other processes.

    The many short files then keep all workers busy to the end.
    """
    if not hasattr(config, "workerinput"):
        return
    ranks = dict.fromkeys((item.path for item in items), 2)
    for item in items:
        markers = {marker.name for marker in item.iter_markers()}
        ranks[item.path] = min(ranks[item.path], 0 if "spark" in markers else 1 if markers & MAY_START_PROCESSES else 2)
    items.sort(key=lambda item: ranks[item.path])


def pytest_collection() -> None:
    """Collect no garbage while everything is imported and most objects stay: a tenth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests, most of all objects, from garbage collection: fixtures collect often."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Collect everything again, so that pytest reports what was left open."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server",
        choices=("odradek", "apache"),
        default=os.environ.get("SERVER", "odradek"),
        help="the server that the interop tests run against; apache proves that they expect Kafka's behaviour",
    )


class FilesInTurn(LoadScopeScheduling):
    """The tests of a file stay in one worker, for they share servers; so do all files that share the Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        in_pipeline = path.startswith("tests/pipeline/")
        return "the Spark session" if in_pipeline and _uses_session(self.config.rootpath / path) else path


@cache
def _uses_session(path: Path) -> bool:
    return "SparkSession" in path.read_text()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FilesInTurn:
    config.option.loadscopereorder = False  # `pytest_collection_modifyitems` has ordered the files
    return FilesInTurn(config, log)
