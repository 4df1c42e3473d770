from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.spark.spark_session import RequirementMissingError, check_java, session


def test_without_java_nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequirementMissingError, match="Spark needs Java 17 or newer, and none was found"):
        session("none")


def test_a_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequirementMissingError, match=f"JAVA_HOME is {tmp_path}"):
        check_java()
