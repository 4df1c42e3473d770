"""Files of interrupted operations: removed or completed when the log is opened."""

from __future__ import annotations

from pathlib import Path

from tests.storage.logs import batch, names_in, values_of
from tests.storage.opening.test_recovery import COUNT, assert_works_on, fill, reopened, segment_files


def test_files_marked_deleted_or_cleaned_are_removed(tmp_path: Path) -> None:
    values = fill(tmp_path)
    directory = tmp_path / "t-0"
    before = names_in(directory)
    for name in (
        f"{0:020d}.log.deleted",
        f"{99:020d}.index.deleted",
        f"{0:020d}.log.cleaned",
        f"{5:020d}.index.cleaned",
    ):
        (directory / name).write_bytes(b"x")
    log_dir, log = reopened(tmp_path)
    assert set(names_in(directory)) <= {*before, f"{COUNT:020d}.snapshot"}
    assert_works_on(log, values)
    log_dir.close()


def test_a_swap_that_was_complete_is_finished(tmp_path: Path) -> None:
    """The second and third segment were compacted into one, which has all but the third's first batch."""
    values = fill(tmp_path, flushed=COUNT)
    directory = tmp_path / "t-0"
    _, second, third, *_ = (int(path.stem) for path in segment_files(tmp_path, ".log"))
    size = len(batch(values[third], producer_id=9))
    data = (directory / f"{second:020d}.log").read_bytes() + (directory / f"{third:020d}.log").read_bytes()[size:]
    (directory / f"{second:020d}.log.swap").write_bytes(data)
    log_dir, log = reopened(tmp_path)
    assert values_of(log) == values[:third] + values[third + 1 :]
    assert not list(directory.glob("*.swap"))
    assert not (directory / f"{third:020d}.log").exists()
    assert [values_of(log, start=offset)[0] for offset in (third - 1, third, third + 1)] == [
        values[third - 1], values[third + 1], values[third + 1],
    ]  # fmt: skip
    log_dir.close()


def test_a_swap_that_was_not_complete_is_undone(tmp_path: Path) -> None:
    values = fill(tmp_path, flushed=COUNT)
    directory = tmp_path / "t-0"
    _, second, third, *_ = (int(path.stem) for path in segment_files(tmp_path, ".log"))
    (directory / f"{second:020d}.log.cleaned").write_bytes(b"half")
    (directory / f"{third:020d}.log.swap").write_bytes(b"whole")
    log_dir, log = reopened(tmp_path)
    assert not [name for name in names_in(directory) if name.endswith((".swap", ".cleaned"))]
    assert_works_on(log, values)
    log_dir.close()
