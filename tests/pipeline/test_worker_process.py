"""Spark's Python processes leave modules out of their collections of garbage; the user's own process does not."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec

import pytest

from pipeline.worker_process import spare_collections, spare_imports


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    spare_collections.cache_clear()
    yield
    spare_collections.cache_clear()
    gc.unfreeze()


def test_the_users_process_keeps_its_collections() -> None:
    before = gc.get_freeze_count()
    spare_imports()
    spare_collections()
    assert gc.get_freeze_count() == before


@pytest.mark.parametrize("name", ["pyspark.daemon", "pyspark.sql.streaming.python_streaming_source_runner"])
def test_in_a_process_of_sparks_what_is_loaded_is_left_out_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(name, None))
    spare_collections()
    frozen = gc.get_freeze_count()
    assert frozen > len(sys.modules)
    later = [[] for _ in range(1000)]
    spare_collections()
    assert gc.get_freeze_count() <= frozen, later
