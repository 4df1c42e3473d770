"""Spark's Python processes collect less garbage, and say less at their end; the user's own process does as ever."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import ModuleSpec

import pytest

from odradek.pipeline.spark.worker_process import hang_up_quietly, spare_collections, spare_imports


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


def printed(error: Exception, capsys: pytest.CaptureFixture[str]) -> str:
    try:
        raise error
    except type(error):
        traceback.print_exc()
    return capsys.readouterr().err


def test_a_worker_that_is_not_listened_to_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec("pyspark.daemon", None))
    monkeypatch.setattr(traceback, "print_exc", traceback.print_exc)  # to have it back afterwards
    hang_up_quietly()
    assert printed(BrokenPipeError("nobody reads"), capsys) == ""
    assert printed(ValueError("another error"), capsys).endswith("ValueError: another error\n")


def test_the_users_process_prints_every_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    hang_up_quietly()
    assert printed(BrokenPipeError("nobody reads"), capsys).endswith("BrokenPipeError: nobody reads\n")
