"""`verify` reports no problem in sound directories, and every damage with its place."""

from __future__ import annotations

import io
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from odradek.broker.inspection.command import verify
from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.text import ProgressBar
from odradek.broker.inspection.verification import Outcome, Verification
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.testing.clock import ManualClock
from tests.effort import cases
from tests.storage.logs import NOW, TOPIC_ID, append, batch, marker, open_log_dir
from tests.storage.offline.test_stored_log_dir import state_of
from tests.storage.test_golden import HERE
from tests.storage.test_old_formats import OLD, written

FIRST = f"{0:020d}"
SECOND = f"{10788:020d}"
ROLLED = f"rolled-0/{FIRST}"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))


def found_in(path: Path) -> tuple[Outcome, list[Problem]]:
    problems: list[Problem] = []
    outcome = Verification(str(path), problems.append, lambda done, total: None).run()
    assert outcome.problems == len(problems)
    return outcome, problems


def problems_in(path: Path) -> list[Problem]:
    return found_in(path)[1]


def test_kafkas_directory_has_no_problems(golden: Path) -> None:
    before = state_of(golden)
    outcome, problems = found_in(golden)
    assert problems == []
    logs = list(golden.glob("*/*.log"))
    assert outcome.bytes == sum(log.stat().st_size for log in logs)
    assert (outcome.partitions, outcome.segments) == (13, len(logs))
    assert state_of(golden) == before


@pytest.mark.parametrize("clean", [True, False])
def test_our_directory_has_no_problems(tmp_path: Path, clean: bool) -> None:
    """Transactions, several segments and epochs, large batches; after a kill the last segment has room in its files."""
    config = LogConfig(segment_bytes=1 << 20, index_interval_bytes=100, segment_index_bytes=6000, preallocate=True)
    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    for number in range(200):
        append(log, b"x" * (10 * number), timestamp=NOW + 10 * (number % 7), leader_epoch=number // 50)
        fields = {"producer_id": 3, "producer_epoch": 0, "base_sequence": number, "is_transactional": True}
        append(log, b"y", leader_epoch=number // 50, **fields)
        if number % 3 == 0:
            log.append_as_leader(marker(3, 0, commit=number % 2 == 0), number // 50, NOW, Origin.COORDINATOR)
    for _ in range(3):
        append(log, b"z" * 900_000, leader_epoch=4)
        append(log, *[b"more"] * 20, leader_epoch=4)
    log.advance_high_watermark(log.log_end_offset)
    log.update_log_start_offset(5)
    log_dir.checkpoint()
    segments = log.segments_count
    log_dir.close(clean=clean)
    outcome, problems = found_in(tmp_path)
    assert problems == []
    assert (outcome.segments, outcome.batches) == (segments, 200 + 200 + 67 + 6)
    assert segments > 3


def test_messages_of_old_formats_are_checked(tmp_path: Path) -> None:
    written(tmp_path / "sound", b"".join(OLD)).roll()  # which makes the indexes
    assert problems_in(tmp_path / "sound") == []
    damaged = bytearray(b"".join(OLD))
    position = len(OLD[0]) + len(OLD[1])
    damaged[position + 30] ^= 1
    (tmp_path / "sound" / "t-0" / f"{FIRST}.log").write_bytes(damaged)
    (found,) = (problem for problem in problems_in(tmp_path / "sound") if problem.path.endswith(".log"))
    assert (found.position, found.offset) == (position, 4)
    assert found.problem.startswith("the checksum is wrong")


def test_a_change_of_any_byte_is_a_problem(golden: Path) -> None:
    """A checksum, an index or the leader epochs reveal each change."""
    alone = golden.parent / "alone"
    shutil.copytree(golden / "transactional-0", alone / "transactional-0")
    log = alone / "transactional-0" / f"{10:020d}.log"
    sound = log.read_bytes()
    for at in Random(1).sample(range(len(sound)), cases(len(sound))):
        log.write_bytes(sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :])
        assert problems_in(alone), f"byte {at}"
    log.write_bytes(sound)
    assert problems_in(alone) == []


def change(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def heads(path: Path) -> list[tuple[int, int, int]]:
    """Position, base offset and size of each batch, read without our code."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        offset, length = struct.unpack_from(">qi", data, at)
        found.append((at, offset, length + 12))
        at += length + 12
    return found


def test_a_flipped_byte_is_reported_with_its_place(golden: Path) -> None:
    log = golden / f"{ROLLED}.log"
    position, offset, size = heads(log)[7]
    change(log, position + 61 + size // 2, b"\xff\xfe")
    found = problems_in(golden)
    assert found[0] == Problem(f"{ROLLED}.log", f"the checksum is wrong; skipped {size} bytes", position, offset)
    # What the indexes say of it cannot be confirmed then.
    assert {problem.path for problem in found[1:]} <= {f"{ROLLED}.index", f"{ROLLED}.timeindex"}


def test_after_a_broken_length_it_continues_at_an_index_entry(golden: Path) -> None:
    log = golden / f"{ROLLED}.log"
    batches = heads(log)
    position, offset, _ = batches[7]
    change(log, position + 8, struct.pack(">i", 7))
    later = batches[-1]
    change(log, later[0] + later[2] - 1, b"\xff")
    found = [problem for problem in problems_in(golden) if problem.path == f"{ROLLED}.log"]
    assert [(problem.position, problem.offset) for problem in found] == [(position, offset), later[:2]]
    assert found[0].problem.startswith("offset 580 and length 7 cannot be of a batch; skipped")


def test_a_torn_end_is_found(golden: Path) -> None:
    log = golden / f"rolled-0/{SECOND}.log"
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(bytes(batch(b"torn"))[:70])
    found = problems_in(golden)
    assert found == [
        Problem(f"rolled-0/{SECOND}.log", "a batch of 73 bytes where 70 remain; skipped 70 bytes", size, 0)
    ]


def write_segments(path: Path) -> list[Path]:
    """Write a partition of five segments, and return the paths of their logs."""
    config = LogConfig(segment_bytes=1000)
    log_dir = open_log_dir(path, config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    while log.segments_count < 5:
        append(log, b"x" * 100, b"y")
    log.advance_high_watermark(log.log_end_offset)
    log_dir.close()
    return sorted((path / "t-0").glob("*.log"))


def remove_segment(log: Path) -> None:
    for file in log.parent.glob(f"{log.stem}.*"):
        file.unlink()


def test_a_whole_segment_that_is_missing_in_the_middle_is_found(tmp_path: Path) -> None:
    logs = write_segments(tmp_path)
    first, behind = int(logs[1].stem), int(logs[3].stem)
    remove_segment(logs[1])
    remove_segment(logs[2])
    says = f"offsets {first} to {behind - 1} are missing, which neither retention nor compaction explains"
    missing = Problem(f"t-0/{logs[3].name}", says, 0, first)
    assert missing in problems_in(tmp_path)
    remove_segment(logs[0])
    assert problems_in(tmp_path) == [], "retention removes the first ones"


def test_a_segment_that_compaction_emptied_is_not_missing(tmp_path: Path) -> None:
    logs = write_segments(tmp_path)
    remove_segment(logs[2])
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    assert problems_in(tmp_path) == []


def test_damage_at_the_end_of_a_segment_is_not_reported_twice(tmp_path: Path) -> None:
    logs = write_segments(tmp_path)
    logs[1].write_bytes(logs[1].read_bytes()[:-7])
    assert not any("missing" in problem.problem for problem in problems_in(tmp_path))
    assert problems_in(tmp_path)


def test_offsets_that_go_back_are_found(golden: Path) -> None:
    log = golden / f"{ROLLED}.log"
    position, _, _ = heads(log)[7]
    change(log, position, struct.pack(">q", 11))
    found = [problem for problem in problems_in(golden) if problem.path == f"{ROLLED}.log"]
    assert [(problem.position, problem.offset) for problem in found] == [(position, 11)]
    assert "after 579" in found[0].problem


def entry_of(path: Path, number: int, form: str) -> tuple[int, ...]:
    data = path.read_bytes()
    size = struct.calcsize(form)
    return struct.unpack(form, data[number * size : (number + 1) * size])


def spoil_offset_entry(golden: Path) -> Problem:
    path = golden / f"{ROLLED}.index"
    offset, position = entry_of(path, 3, ">ii")
    change(path, 3 * 8 + 4, struct.pack(">i", position + 1))
    return Problem(f"{ROLLED}.index", f"has position {position + 1}, where no batch starts", 24, offset)


def spoil_order_of_offset_entries(golden: Path) -> Problem:
    path = golden / f"{ROLLED}.index"
    before, second = entry_of(path, 2, ">ii"), entry_of(path, 0, ">ii")
    change(path, 3 * 8, struct.pack(">ii", *second))
    return Problem(f"{ROLLED}.index", f"{second} after {before}: what does not ascend cannot be searched", 24)


def spoil_time_entry(golden: Path) -> Problem:
    path = golden / f"{ROLLED}.timeindex"
    timestamp, offset = entry_of(path, 2, ">qi")
    change(path, 2 * 12, struct.pack(">q", timestamp + 1))
    return Problem(f"{ROLLED}.timeindex", f"has timestamp {timestamp + 1}, ", 24, offset)


def cut_index(golden: Path) -> Problem:
    path = golden / f"{ROLLED}.index"
    path.write_bytes(path.read_bytes()[:-3])
    size = path.stat().st_size
    return Problem(f"{ROLLED}.index", f"{size} bytes are no multiple of 8", size // 8 * 8)


def remove_index(golden: Path) -> Problem:
    (golden / f"{ROLLED}.timeindex").unlink()
    return Problem(f"{ROLLED}.timeindex", "is missing")


def remove_log(golden: Path) -> Problem:
    (golden / f"rolled-0/{SECOND}.log").unlink()
    return Problem(f"rolled-0/{SECOND}.index", "is an index without a log")


def empty_transaction_index(golden: Path) -> Problem:
    name = f"transactional-0/{10:020d}.txnindex"
    (golden / name).write_bytes(b"")
    return Problem(name, "lacks the transaction of producer 1 that was aborted from 11 on", offset=21)


def change_transaction_entry(golden: Path) -> Problem:
    name = f"transactional-0/{10:020d}.txnindex"
    change(golden / name, 2 + 8 + 8, struct.pack(">q", 20))
    return Problem(name, "has no marker in the log", offset=20)


def spoil_snapshot(golden: Path) -> Problem:
    name = f"idempotent-0/{100:020d}.snapshot"
    change(golden / name, 20, b"\xff")
    return Problem(name, "the checksum is wrong")


def spoil_epochs(golden: Path) -> Problem:
    name = "rolled-0/leader-epoch-checkpoint"
    (golden / name).write_text("0\n2\n0 0\n5 12000\n")
    return Problem(name, "has epoch 5, where the batch has 0", offset=12000)


def spoil_epoch_checkpoint(golden: Path) -> Problem:
    name = "rolled-0/leader-epoch-checkpoint"
    (golden / name).write_text("what")
    return Problem(name, "no version and count in b'what'")


def spoil_topic_id(golden: Path) -> Problem:
    (golden / "rolled-0/partition.metadata").unlink()
    return Problem("rolled-0/partition.metadata", "is missing")


def spoil_recovery_points(golden: Path) -> Problem:
    (golden / "recovery-point-offset-checkpoint").write_text("0\n1\nrolled 0 20001\n")
    says = "rolled-0 is synced up to 20001, and its log ends at 20000"
    return Problem("recovery-point-offset-checkpoint", says, offset=20001)


def empty_checkpoint(golden: Path) -> Problem:
    (golden / "replication-offset-checkpoint").write_text("")
    return Problem("replication-offset-checkpoint", "no version and count in b''")


def spoil_identity(golden: Path) -> Problem:
    (golden / "meta.properties").write_text("version=1\nnode.id=1\n")
    return Problem("meta.properties", "lacks 'cluster.id'")


SPOILERS = [
    spoil_offset_entry, spoil_order_of_offset_entries, spoil_time_entry, cut_index, remove_index, remove_log,
    empty_transaction_index, change_transaction_entry, spoil_snapshot, spoil_epochs, spoil_epoch_checkpoint,
    spoil_topic_id, spoil_recovery_points, empty_checkpoint, spoil_identity,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILERS)
def test_every_problem_has_its_place(golden: Path, spoil: Callable[[Path], Problem]) -> None:
    wanted = spoil(golden)
    places = [
        problem
        for problem in problems_in(golden)
        if (problem.path, problem.position, problem.offset) == (wanted.path, wanted.position, wanted.offset)
    ]
    assert any(wanted.problem in problem.problem for problem in places), problems_in(golden)


def test_the_exit_status_is_1_if_there_are_problems(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify([str(golden)]) == 0
    assert capsys.readouterr().out.endswith("no problems\n")
    spoil_snapshot(golden)
    assert verify([str(golden)]) == 1
    said, progress = capsys.readouterr()
    assert said.splitlines()[0] == f"idempotent-0/{100:020d}.snapshot: the checksum is wrong"
    assert said.endswith(": 1 problem\n")
    assert progress == "", "there is no terminal"
    assert verify([str(golden), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["found"] == [{"path": f"idempotent-0/{100:020d}.snapshot", "problem": "the checksum is wrong"}]
    assert (found["problems"], found["partitions"]) == (1, 13)


def test_an_unreadable_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify([str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err
    (tmp_path / "notes.txt").touch()
    assert verify([str(tmp_path)]) == 1, "nothing was verified"
    assert f"{tmp_path}: no log directory" in capsys.readouterr().err
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    assert verify([str(tmp_path)]) == 0, "of a broker without topics"
    with pytest.raises(SystemExit) as exited:
        verify([])
    assert exited.value.code == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_progress_bar() -> None:
    clock, terminal = ManualClock(NOW), Terminal()
    bar = ProgressBar(terminal, clock)
    bar.show(1, 100)
    assert terminal.getvalue() == "", "not more often than can be seen"
    clock.advance(2000)
    bar.show(50 << 20, 100 << 20)
    assert terminal.getvalue() == f"\r[{'#' * 20}{'-' * 20}]  50%  25.0 MiB/s\033[K"
    bar.clear()
    assert terminal.getvalue().endswith("\r\033[K")
