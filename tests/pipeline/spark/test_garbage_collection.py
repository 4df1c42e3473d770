"""Spark's Python processes exclude modules from garbage collection; the user's own process does not."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec

import pytest

from odradek.pipeline.spark.garbage_collection import freeze_modules


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    freeze_modules.cache_clear()
    yield
    freeze_modules.cache_clear()
    gc.unfreeze()


def test_nothing_is_frozen_in_the_users_process() -> None:
    before = gc.get_freeze_count()
    freeze_modules()
    assert gc.get_freeze_count() == before


@pytest.mark.parametrize(
    "name",
    [
        "pyspark.daemon",
        "odradek.pipeline.spark.worker_daemon",
        "pyspark.sql.streaming.python_streaming_source_runner",
    ],
)
def test_modules_are_frozen_once_in_a_process_of_spark(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(name, None))
    freeze_modules()
    frozen = gc.get_freeze_count()
    assert frozen > len(sys.modules)
    later = [[] for _ in range(1000)]
    freeze_modules()
    assert gc.get_freeze_count() <= frozen, later
