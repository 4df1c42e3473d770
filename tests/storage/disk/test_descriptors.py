"""The bounded cache of open files."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles


class CountingFiles(OsFiles):
    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.opened = 0

    def open(self, path: str, *, create: bool = False) -> int:
        number = super().open(path, create=create)
        self.numbers.add(number)
        self.opened += 1
        return number

    def close(self, descriptor: int) -> None:
        self.numbers.remove(descriptor)
        super().close(descriptor)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    made = [tmp_path / f"{index}" for index in range(5)]
    for path in made:
        path.write_bytes(path.name.encode())
    return [str(path) for path in made]


def test_the_least_recently_used_file_is_closed(paths: list[str]) -> None:
    files = CountingFiles()
    cache = DescriptorCache(files, capacity=3)
    for path in [*paths[:3], paths[0], paths[3]]:
        cache.unpin(cache.pin(path))
    assert (len(files.numbers), files.opened) == (3, 4)
    cache.unpin(cache.pin(paths[0]))
    assert files.opened == 4
    cache.unpin(cache.pin(paths[1]))
    assert files.opened == 5
    cache.close()
    assert not files.numbers


def test_the_paths_of_open_files_are_known(paths: list[str]) -> None:
    cache = DescriptorCache(OsFiles(), capacity=3)
    pinned = [cache.pin(path) for path in paths[:2]]

    assert cache.paths() == {each.number: each.path for each in pinned}
    assert sorted(cache.paths().values()) == paths[:2]
    for each in pinned:
        cache.unpin(each)
    cache.close()
    assert cache.paths() == {}


def test_pinned_files_stay_open_and_make_no_room(paths: list[str]) -> None:
    files = CountingFiles()
    cache = DescriptorCache(files, capacity=2)
    pinned = [cache.pin(path) for path in paths]
    assert len(files.numbers) == 5
    assert [files.pread(d.number, 9, 0) for d in pinned] == [b"0", b"1", b"2", b"3", b"4"]
    for descriptor in pinned:
        cache.unpin(descriptor)
    assert len(files.numbers) == 2
    cache.close()
    assert not files.numbers


def test_a_forgotten_file_is_closed_with_its_last_pin(paths: list[str]) -> None:
    files = CountingFiles()
    cache = DescriptorCache(files)
    first, again = cache.pin(paths[0]), cache.pin(paths[0])
    assert first is again
    cache.forget(paths[0])
    Path(paths[0]).write_bytes(b"not")
    other = cache.pin(paths[0])
    assert other is not first
    cache.unpin(first)
    assert len(files.numbers) == 2
    cache.unpin(again)
    assert files.numbers == {other.number}
    cache.unpin(other)
    cache.close()
    cache.forget(paths[1])
    assert not files.numbers


def test_pinning_a_missing_file_raises(tmp_path: Path) -> None:
    cache = DescriptorCache(OsFiles())
    with pytest.raises(FileNotFoundError):
        cache.pin(str(tmp_path / "none"))
    assert len(cache) == 0


def test_a_created_file_replaces_what_was_open_under_its_name(tmp_path: Path) -> None:
    files = CountingFiles()
    cache = DescriptorCache(files)
    path = str(tmp_path / "a")
    cache.create(path)
    files.remove(path)
    cache.create(path)
    assert len(files.numbers) == 1
    cache.close()
