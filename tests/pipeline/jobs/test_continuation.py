"""The next range of an export, from the last one and the state of the logs."""

from __future__ import annotations

from odradek.broker.storage.checkpoints.leader_epochs import EpochStart
from odradek.client.record import TopicPartition
from odradek.pipeline.jobs.log_directories.continuation import Checkpoint, next_checkpoint
from odradek.pipeline.jobs.log_directories.log_offsets import LogState
from odradek.pipeline.options.bounds import Numbers

PARTITION = TopicPartition("t", 0)
NEW_PARTITION = TopicPartition("t", 1)


def log(
    starts: Numbers, ends: Numbers, *, stored: Numbers | None = None, topic_id: str = "A", epochs: int = 0
) -> LogState:
    entries = {key: [EpochStart(0, 0)] if epochs == 0 else [EpochStart(0, 0), EpochStart(1, epochs)] for key in starts}
    return LogState(starts, ends, ends if stored is None else stored, entries, {"t": topic_id}, "cluster")


def run(last: Checkpoint | None, state: LogState) -> tuple[Numbers, Numbers, list[str]]:
    found, losses = next_checkpoint(last, state)
    assert Checkpoint.from_json(found.to_json()) == found
    return found.starts, found.ends, losses


FIRST = next_checkpoint(None, log({PARTITION: 3}, {PARTITION: 10}))[0]


def test_a_run_starts_where_the_last_one_ended() -> None:
    assert run(None, log({PARTITION: 3}, {PARTITION: 10})) == ({PARTITION: 3}, {PARTITION: 10}, [])
    state = log({PARTITION: 5, NEW_PARTITION: 0}, {PARTITION: 12, NEW_PARTITION: 4})
    starts, ends = {PARTITION: 10, NEW_PARTITION: 0}, {PARTITION: 12, NEW_PARTITION: 4}
    assert run(FIRST, state) == (starts, ends, [])


def test_an_end_that_is_lower_for_now_is_no_loss() -> None:
    """A running broker is read to its last stored high watermark, which may lie below the end after a clean stop."""
    assert run(FIRST, log({PARTITION: 3}, {PARTITION: 7}, stored={PARTITION: 10})) == (
        {PARTITION: 10},
        {PARTITION: 10},
        [],
    )


def test_a_new_epoch_behind_the_last_end_is_no_truncation() -> None:
    assert run(FIRST, log({PARTITION: 3}, {PARTITION: 12}, epochs=10)) == ({PARTITION: 10}, {PARTITION: 12}, [])
    starts, _, losses = run(FIRST, log({PARTITION: 3}, {PARTITION: 12}, epochs=9))
    assert starts == {PARTITION: 9}
    assert losses == ["t-0 was exported up to offset 10, and was truncated to offset 9 since then"]


def test_a_new_partition_that_lost_its_beginning_is_reported() -> None:
    state = log({PARTITION: 3, NEW_PARTITION: 6}, {PARTITION: 10, NEW_PARTITION: 8})
    starts, _, losses = run(FIRST, state)
    assert starts == {PARTITION: 10, NEW_PARTITION: 6}
    assert losses == ["the new partition t-1 starts at offset 6, not at 0"]


def test_a_partition_that_comes_back_continues_where_it_ended() -> None:
    without, losses = next_checkpoint(FIRST, log({NEW_PARTITION: 0}, {NEW_PARTITION: 4}))
    assert losses == ["the log directory no longer has t-0"]
    both = log({PARTITION: 3, NEW_PARTITION: 0}, {PARTITION: 11, NEW_PARTITION: 4})
    starts, ends = {PARTITION: 10, NEW_PARTITION: 4}, {PARTITION: 11, NEW_PARTITION: 4}
    assert run(without, both) == (starts, ends, [])


def test_ids_that_a_directory_lacks_are_not_compared() -> None:
    state = log({PARTITION: 3}, {PARTITION: 12})._replace(topic_ids={}, cluster_id=None)
    assert run(FIRST, state) == ({PARTITION: 10}, {PARTITION: 12}, [])
    later = next_checkpoint(FIRST, state)[0]
    assert run(later, log({PARTITION: 0}, {PARTITION: 12}, topic_id="B"))[2] == [
        "t was deleted and created again: its id was A, and is now B"
    ]
