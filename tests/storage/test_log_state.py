from __future__ import annotations

from pathlib import Path

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_state import LogState
from odradek.broker.storage.names import LEADER_EPOCHS
from odradek.broker.storage.opening.log_opening import Checkpointed
from tests.storage.logs import NOW, TOPIC_ID, append, names_in, open_log_dir, values_of

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=200)


def make_log(path: Path) -> tuple[LogDir, Log]:
    log_dir = open_log_dir(path, CONFIG)
    return log_dir, log_dir.create_log("t", 0, TOPIC_ID, CONFIG)


def copied_log(state: LogState, log: Log, path: Path) -> Log:
    """The log that the files of a state make in another log directory."""
    log_dir = open_log_dir(path, CONFIG)
    directory = path / "t-0"
    directory.mkdir()
    for file in state.files:
        data = Path(file.path).read_bytes()
        (directory / file.name).write_bytes((data if file.is_final else data[: file.size]) + file.tail)
    for name in ("partition.metadata", LEADER_EPOCHS):
        (directory / name).write_bytes((log.directory / name).read_bytes())
    if state.snapshot_name is not None:
        (directory / state.snapshot_name).write_bytes(state.producers)
    bounds = Checkpointed(state.log_end_offset, state.log_start_offset, state.cleaned_offset)
    return log_dir.open_log("t", 0, CONFIG, bounds)


def test_the_files_of_a_state_are_the_log(tmp_path: Path) -> None:
    _, log = make_log(tmp_path / "log")
    for number in range(30):
        append(log, b"v%d" % number, timestamp=NOW + number)
    append(log, b"later", timestamp=NOW + 900)  # the time index has no entry of it yet
    state = log.state()
    append(log, b"after", timestamp=NOW + 5000)

    copy = copied_log(state, log, tmp_path / "copy")

    assert copy.segments_count > 2
    assert values_of(copy) == values_of(log)[:-1]
    assert copy.log_end_offset == 31
    found = copy.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 900, 30)
    assert copy.topic_id == TOPIC_ID
    append(copy, b"another")
    assert values_of(copy)[-1] == b"another"


def test_appends_and_new_segments_leave_a_log_one_that_begins_like_its_state(tmp_path: Path) -> None:
    _, log = make_log(tmp_path)
    append(log, b"a")
    state = log.state()
    assert state.is_beginning_of(log)

    append(log, b"b" * 900)
    append(log, b"c" * 900)
    assert log.segments_count > 1
    assert state.is_beginning_of(log)

    log.advance_high_watermark(log.log_end_offset)
    log.update_log_start_offset(1)
    assert not state.is_beginning_of(log)


def test_a_truncation_to_a_state_reads_nothing_and_keeps_open_transactions_only(tmp_path: Path) -> None:
    log_dir, log = make_log(tmp_path)
    append(log, b"idle", producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, b"open", producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.advance_high_watermark(log.log_end_offset)
    state = log.state()
    for sequence in range(1, 20):
        append(log, b"x" * 100, producer_id=1, producer_epoch=0, base_sequence=sequence, timestamp=NOW + sequence)

    assert log.truncate_to(state.log_end_offset, state)

    assert values_of(log) == [b"idle", b"open"]
    assert [entry.producer_id for entry in log.producers] == [2]
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 1
    found = log.max_timestamp_offset()
    assert found is not None
    assert found.timestamp == NOW
    assert append(log, b"goes on", producer_id=1, producer_epoch=0, base_sequence=7) == 2
    log_dir.close()
    again = open_log_dir(tmp_path, CONFIG).logs["t", 0]
    assert values_of(again) == [b"idle", b"open", b"goes on"]
    assert again.producers.entries[2].transaction_first_offset == 1


def test_a_log_at_the_end_of_its_state_forgets_producers_also_in_its_snapshot(tmp_path: Path) -> None:
    log_dir, log = make_log(tmp_path)
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll()
    assert f"{1:020d}.snapshot" in names_in(log.directory)
    state = log.state()

    assert not log.truncate_to(1, state)

    assert len(log.producers) == 0
    log_dir.close()
    assert len(open_log_dir(tmp_path, CONFIG).logs["t", 0].producers) == 0
