"""Listing directories, replacing files, making directories."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.broker.storage.disk.files import OsFiles, make_directories, replace_file


def test_a_file_removed_during_a_listing_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "checkpoint.tmp").touch()
    listings = []
    scandir = os.scandir

    @contextmanager
    def slow_scandir(path: str) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(path) as names:
            listings.append(list(names))
        if len(listings) == 1:
            (tmp_path / "checkpoint.tmp").rename(tmp_path / "checkpoint")
        yield listings[-1]

    monkeypatch.setattr(os, "scandir", slow_scandir)
    assert {entry.name: entry.size for entry in OsFiles().scan(str(tmp_path))} == {"a": 3, "checkpoint": 0}
    assert len(listings) == 2


def test_a_dangling_link_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "a").touch()
    assert [entry.name for entry in OsFiles().scan(str(tmp_path))] == ["a"]


def test_listing_a_missing_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OsFiles().scan(str(tmp_path / "gone"))


def test_replacing_a_file_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    (tmp_path / "checkpoint.tmp").write_text("left from before")
    for text in ("one", "two"):
        replace_file(OsFiles(), str(path), text.encode())
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_directories_are_created_with_their_parents(tmp_path: Path) -> None:
    files = OsFiles()
    for _ in range(2):
        make_directories(files, str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=str(errno.EEXIST)):
        files.make_directory(str(tmp_path / "file"))
