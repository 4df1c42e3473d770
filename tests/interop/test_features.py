"""kafka-features.sh of Apache Kafka changes and prints the level of `transaction.version`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.peers import java

pytestmark = pytest.mark.java

NAME = "transaction.version"
LEVELS = re.compile(rf"Feature: {NAME}\s+SupportedMinVersion: (\d+)\s+SupportedMaxVersion: (\d+)\s+Finalized\w+: (\d+)")

Run = Callable[..., str]


@pytest.fixture
def run(bootstrap: str) -> Iterator[Run]:
    def run(*arguments: str) -> str:
        done = java.run(java.FEATURE_COMMAND, "--bootstrap-server", bootstrap, *arguments, check=False)
        return done.stdout + done.stderr

    yield run
    run("upgrade", "--feature", f"{NAME}=2")  # other tests share the server


def described(run: Run) -> list[tuple[str, ...]]:
    return LEVELS.findall(run("describe"))


def test_the_feature_tool_changes_levels(run: Run) -> None:
    assert described(run) == [("0", "2", "2")]

    assert run("downgrade", "--feature", f"{NAME}=1") == f"{NAME} was downgraded to 1.\n"
    assert run("disable", "--feature", NAME) == f"{NAME} was disabled.\n"
    assert described(run) == [("0", "2", "0")]
    assert run("upgrade", "--feature", f"{NAME}=1", "--dry-run") == f"{NAME} can be upgraded to 1.\n"
    refused = run("upgrade", "--feature", f"{NAME}=3")
    assert f"Could not upgrade {NAME} to 3." in refused
    assert "1 out of 1 operation(s) failed." in refused


def test_the_feature_tool_shows_the_release(run: Run) -> None:
    """Kafka's admin client reads it by `describeFeatures`, as Kafka UIs do."""
    rows = re.findall(r"Feature: metadata.version\s+.*FinalizedVersionLevel: (\S+)", run("describe"))
    assert rows == ["4.3-IV0"]


def test_each_level_is_reached_from_its_neighbours_and_an_unknown_feature_is_refused(run: Run) -> None:
    assert run("downgrade", "--feature", f"{NAME}=1", "--dry-run") == f"{NAME} can be downgraded to 1.\n"
    assert run("downgrade", "--feature", f"{NAME}=0") == f"{NAME} was downgraded to 0.\n"
    assert run("upgrade", "--feature", f"{NAME}=1") == f"{NAME} was upgraded to 1.\n"
    refused = run("downgrade", "--feature", f"{NAME}=2")
    assert f"Could not downgrade {NAME} to 2." in refused
    refused = run("upgrade", "--feature", "unknown.version=1")
    assert "Could not upgrade unknown.version to 1." in refused
    assert run("upgrade", "--feature", f"{NAME}=2") == f"{NAME} was upgraded to 2.\n"
    assert described(run) == [("0", "2", "2")]
