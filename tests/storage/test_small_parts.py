"""Names, open files, epochs, deletions: the parts that have rules of their own."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.deletions import Deletions
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import OsFiles, make_directories, replace_file
from odradek.broker.storage.names import (
    deleted_directory,
    file_name,
    is_deleted_directory,
    parse_file_name,
    parse_partition_directory,
)
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import KafkaError

# ------------------------------------------------------------------------------------------------------------ listing


def test_what_goes_away_while_a_directory_is_listed_is_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_link_that_leads_nowhere_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "a").touch()
    assert [entry.name for entry in OsFiles().scan(str(tmp_path))] == ["a"]


def test_a_directory_that_is_not_there_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OsFiles().scan(str(tmp_path / "gone"))


# ---------------------------------------------------------------------------------------------------------------- names


def test_file_names() -> None:
    assert file_name(42, ".log") == "00000000000000000042.log"
    assert parse_file_name("00000000000000000042.index.deleted") == (42, ".index.deleted")
    assert parse_file_name("42.log") is None
    assert parse_file_name("leader-epoch-checkpoint") is None


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("a-0", ("a", 0)), ("a-b-12", ("a-b", 12)), ("a--3", ("a-", 3)), ("a-", None), ("a", None), ("-1", None),
        ("a-1.x-delete", None), ("a-1-stray", None), ("a-01", ("a", 1)),
    ],
)  # fmt: skip
def test_partition_directories(name: str, partition: tuple[str, int] | None) -> None:
    assert parse_partition_directory(name) == partition


def test_deleted_directories() -> None:
    name = deleted_directory("a-b", 7, bytes(range(16)))
    assert name == "a-b-7.000102030405060708090a0b0c0d0e0f-delete"
    assert is_deleted_directory(name)
    assert not is_deleted_directory("a-7")
    assert not is_deleted_directory("my-delete")


# ----------------------------------------------------------------------------------------------------------- open files


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


def test_the_file_unused_for_longest_is_closed(paths: list[str]) -> None:
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


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
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


# ---------------------------------------------------------------------------------------------------------- small files


def test_replacing_a_file_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    (tmp_path / "checkpoint.tmp").write_text("left from before")
    for text in ("one", "two"):
        replace_file(OsFiles(), str(path), text.encode())
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_directories_are_made_with_those_above(tmp_path: Path) -> None:
    files = OsFiles()
    for _ in range(2):
        make_directories(files, str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=str(errno.EEXIST)):
        files.make_directory(str(tmp_path / "file"))


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


def test_a_deletion_that_fails_takes_the_directory_offline(tmp_path: Path) -> None:
    failure = DiskFailure(str(tmp_path))
    deletions = Deletions(OsFiles(), ManualClock(1000), failure)
    deletions.add(0, files=[str(tmp_path)])  # a directory is no file
    for _ in range(2):
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            deletions.run_due()
    assert isinstance(failure.error, IsADirectoryError)


# -------------------------------------------------------------------------------------------------------- leader epochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    """Epoch 2 from offset 0, 3 from 10, 7 from 30."""
    epochs = LeaderEpochs(OsFiles(), str(tmp_path / "epochs"))
    for epoch, start in ((2, 0), (3, 10), (7, 30)):
        epochs.assign(epoch, start)
    return epochs


def written(tmp_path: Path) -> list[tuple[int, int]]:
    again = LeaderEpochs(OsFiles(), str(tmp_path / "epochs"))
    again.load()
    return [tuple(entry) for entry in again.entries]


def test_epochs_are_written_as_they_are_assigned(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert (tmp_path / "epochs").read_text() == "0\n3\n2 0\n3 10\n7 30\n"
    epochs.assign(7, 35)
    assert (epochs.latest, written(tmp_path)) == (7, [(2, 0), (3, 10), (7, 30)])


def test_ends_of_epochs(epochs: LeaderEpochs) -> None:
    asked = {-1: (-1, -1), 0: (0, 0), 2: (2, 10), 3: (3, 30), 4: (3, 30), 6: (3, 30), 7: (7, 50), 8: (-1, -1)}
    assert {epoch: epochs.end_offset_for(epoch, 50) for epoch in asked} == asked
    assert [epochs.epoch_for(offset) for offset in (0, 9, 10, 29, 30, 99)] == [2, 2, 3, 3, 7, 7]


def test_no_epochs(tmp_path: Path) -> None:
    epochs = LeaderEpochs(OsFiles(), str(tmp_path / "epochs"))
    assert (epochs.latest, epochs.epoch_for(0), epochs.end_offset_for(0, 5)) == (-1, -1, (-1, -1))


def test_a_contradicting_epoch_replaces_what_it_contradicts(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.assign(9, 30)  # the leader of epoch 7 wrote nothing
    assert written(tmp_path) == [(2, 0), (3, 10), (9, 30)]
    epochs.assign(10, 5)
    assert written(tmp_path) == [(2, 0), (10, 5)]
    epochs.assign(4, 20)
    assert written(tmp_path) == [(2, 0), (4, 20)]


def test_cutting_epochs_at_either_end(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.truncate_from_end(31)
    assert len(epochs.entries) == 3
    epochs.truncate_from_end(30)
    assert (epochs.latest, written(tmp_path)) == (3, [(2, 0), (3, 10)])
    epochs.truncate_from_start(15)
    assert (written(tmp_path), epochs.epoch_for(15), epochs.epoch_for(14)) == ([(3, 15)], 3, -1)
    epochs.truncate_from_start(15)
    epochs.clear()
    assert (epochs.latest, written(tmp_path)) == (-1, [])


@pytest.mark.parametrize(
    "text", ["", "0\n1\n", "0\n2\n1 0\n1 5\n", "0\n2\n1 5\n2 5\n", "0\n1\n-1 0\n", "1\n0\n", "0\n1\n1 0 0\n"]
)
def test_damaged_epochs_are_noticed(tmp_path: Path, text: str) -> None:
    (tmp_path / "epochs").write_text(text)
    with pytest.raises(MalformedFileError):
        LeaderEpochs(OsFiles(), str(tmp_path / "epochs")).load()
