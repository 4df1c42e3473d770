"""Fixtures of the tests of storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.opening.log_opening import create_log
from odradek.broker.storage.resources import LogResources
from tests.storage.logs import TOPIC_ID, make_resources

NewLog = Callable[..., Log]


@pytest.fixture
def resources(tmp_path: Path) -> Iterator[LogResources]:
    made = make_resources(tmp_path)
    yield made
    made.descriptors.close()


@pytest.fixture
def new_log(tmp_path: Path, resources: LogResources) -> NewLog:
    """Makes the log of another partition of topic `t`; the arguments are LogConfig's."""
    made: list[Log] = []

    def make(**properties: object) -> Log:
        partition = len(made)
        directory = f"{tmp_path}/t-{partition}"
        made.append(create_log(directory, "t", partition, TOPIC_ID, LogConfig(**properties), resources))
        return made[-1]

    return make
