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


def test_a_directory_is_listed_although_files_are_removed_during_each_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"{number:02}.log" for number in range(50)]
    for file in files:
        file.touch()
    scandir = os.scandir

    @contextmanager
    def slow_scandir(path: str) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(path) as names:
            found = list(names)
        for file in (files.pop(0), files.pop(0)):
            file.rename(f"{file}.deleted")
        yield found

    monkeypatch.setattr(os, "scandir", slow_scandir)
    listed = {entry.name for entry in OsFiles().scan(str(tmp_path))}
    assert listed == {file.name for file in files}


def test_a_file_that_takes_the_name_of_a_removed_one_during_a_listing_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0.log").write_bytes(b"old")
    (tmp_path / "0.log.swap").write_bytes(b"compacted")
    interrupted = False

    class Entry:
        """An entry whose file is looked at between the two renames of a swap."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name = entry.name
            self._entry = entry

        def is_symlink(self) -> bool:
            return self._entry.is_symlink()

        def stat(self) -> os.stat_result:
            nonlocal interrupted
            if self.name == "0.log" and not interrupted:
                interrupted = True
                (tmp_path / "0.log").rename(tmp_path / "0.log.deleted")
                try:
                    return self._entry.stat()
                finally:
                    (tmp_path / "0.log.swap").rename(tmp_path / "0.log")
            return self._entry.stat()

    scandir = os.scandir

    @contextmanager
    def slow_scandir(path: str) -> Iterator[list[Entry]]:
        with scandir(path) as names:
            yield [Entry(each) for each in names]

    monkeypatch.setattr(os, "scandir", slow_scandir)
    sizes = {entry.name: entry.size for entry in OsFiles().scan(str(tmp_path))}
    assert sizes == {"0.log": 9, "0.log.deleted": 3}
    assert interrupted


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
