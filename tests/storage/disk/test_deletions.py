"""The removal of files after a delay."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.storage.disk.deletions import Deletions
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import KafkaError


def test_deletions_happen_when_due(tmp_path: Path) -> None:
    clock = ManualClock(1000)
    deletions = Deletions(OsFiles(), clock, DiskFailure(str(tmp_path)))
    file, directory = tmp_path / "file", tmp_path / "directory"
    file.write_text("x")
    (directory / "inner").mkdir(parents=True)
    deletions.add(500, files=[str(file)])
    deletions.add(1000, directories=[str(directory), str(tmp_path / "not there")])
    assert deletions.run_due() == 0
    clock.advance(500)
    assert (deletions.run_due(), file.exists(), directory.exists()) == (1, False, True)
    clock.advance(500)
    assert (deletions.run_due(), directory.exists(), len(deletions)) == (1, False, 0)


def test_the_wall_clock_neither_hastens_nor_delays_deletions(tmp_path: Path) -> None:
    clock = ManualClock(1000)
    deletions = Deletions(OsFiles(), clock, DiskFailure(str(tmp_path)))
    file = tmp_path / "file"
    file.write_text("x")
    deletions.add(60_000, files=[str(file)])
    clock.set_time_ms(10**13)
    assert (deletions.run_due(), file.exists()) == (0, True)
    clock.set_time_ms(0)
    clock.advance(60_000)
    assert (deletions.run_due(), file.exists()) == (1, False)


def test_a_failed_deletion_takes_the_directory_offline(tmp_path: Path) -> None:
    failure = DiskFailure(str(tmp_path))
    deletions = Deletions(OsFiles(), ManualClock(1000), failure)
    deletions.add(0, files=[str(tmp_path)])  # a directory is no file
    for _ in range(2):
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            deletions.run_due()
    assert isinstance(failure.error, IsADirectoryError)
