"""The start offsets of leader epochs, and their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import OsFiles


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


def test_assigned_epochs_are_written_at_once(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert (tmp_path / "epochs").read_text() == "0\n3\n2 0\n3 10\n7 30\n"
    epochs.assign(7, 35)
    assert (epochs.latest, written(tmp_path)) == (7, [(2, 0), (3, 10), (7, 30)])


def test_ends_of_epochs(epochs: LeaderEpochs) -> None:
    expected = {-1: (-1, -1), 0: (0, 0), 2: (2, 10), 3: (3, 30), 4: (3, 30), 6: (3, 30), 7: (7, 50), 8: (-1, -1)}
    assert {epoch: epochs.end_offset_for(epoch, 50) for epoch in expected} == expected
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


def test_truncating_epochs_at_either_end(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.truncate_from_end(31)
    assert len(epochs.entries) == 3
    epochs.truncate_from_end(30)
    assert (epochs.latest, written(tmp_path)) == (3, [(2, 0), (3, 10)])
    epochs.truncate_from_start(15)
    assert (written(tmp_path), epochs.epoch_for(15), epochs.epoch_for(14)) == ([(3, 15)], 3, -1)
    epochs.truncate_from_start(15)
    epochs.clear()
    assert (epochs.latest, written(tmp_path)) == (-1, [])


def test_an_epoch_without_a_batch_ends_the_earlier_ones_and_is_not_written(
    epochs: LeaderEpochs, tmp_path: Path
) -> None:
    epochs.begin(9, 50)

    assert [epochs.end_offset_for(epoch, 50) for epoch in (3, 7, 8, 9, 10)] == [
        (3, 30),
        (7, 50),
        (7, 50),
        (9, 50),
        (-1, -1),
    ]
    assert (epochs.latest, written(tmp_path)[-1]) == (7, (7, 30))

    epochs.assign(9, 50)

    assert (epochs.latest, written(tmp_path)[-1]) == (9, (9, 50))
    assert epochs.end_offset_for(9, 60) == (9, 60)


def test_an_epoch_without_a_batch_begins_at_the_end_of_a_log_that_becomes_shorter(epochs: LeaderEpochs) -> None:
    epochs.begin(9, 50)

    epochs.truncate_from_end(25)

    assert [epochs.end_offset_for(epoch, 25) for epoch in (3, 7, 9)] == [(3, 25), (3, 25), (9, 25)]


@pytest.mark.parametrize(
    "text", ["", "0\n1\n", "0\n2\n1 0\n1 5\n", "0\n2\n1 5\n2 5\n", "0\n1\n-1 0\n", "1\n0\n", "0\n1\n1 0 0\n"]
)
def test_a_damaged_epoch_file_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "epochs").write_text(text)
    with pytest.raises(MalformedFileError):
        LeaderEpochs(OsFiles(), str(tmp_path / "epochs")).load()
