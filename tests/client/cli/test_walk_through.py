"""The walk-through of `make demo` with 100,000 lines: every number that its commands print agrees with the others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from demo.walk_through import SEGMENT_BYTES, TOPIC, WalkThrough
from tests.peers.server import Server

REPOSITORY = Path(__file__).resolve().parents[3]
LINES = 100_000
INDEX_INTERVAL = 4096  # bytes of batches between two entries, at least


@pytest.mark.interop
def test_every_number_of_the_walk_through(server: Server, tmp_path: Path) -> None:
    walk = WalkThrough(server.bootstrap, server.log_dir, tmp_path, LINES)
    walk.run()

    lines = (tmp_path / "lines.txt").read_text().splitlines()
    assert lines == [f"hello odradek {number}" for number in range(1, LINES + 1)]
    assert client("consume", "--from-beginning", "--no-follow", *at(server)).splitlines() == lines

    segments = Segments(server.log_dir / f"{TOPIC}-0")
    listed = {
        name: int(size)
        for size, name in re.findall(r" (\d+) \w+ +\d+ [\d:]+ (\S+)$", walk.printed["segments"], re.MULTILINE)
    }
    for base_offset, batches in segments.batches.items():
        size = sum(batch["size"] for batch in batches)
        assert size <= SEGMENT_BYTES
        assert segments.file(base_offset, "log").stat().st_size == listed[f"{base_offset:020}.log"] == size
        assert [batch["position"] for batch in batches] == [
            sum(batch["size"] for batch in batches[:index]) for index in range(len(batches))
        ]
    assert len(segments.batches) > 2
    follow_each_other(segments)
    check_indexes(segments, walk)
    check_time(walk, server, lines)


@pytest.mark.interop
def test_the_demo_has_a_broker_and_a_directory_of_its_own(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}

    def demo(lines: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "demo", "--lines", str(lines)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)

    mine = tmp_path / "demo" / "data" / "walk1" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("of the user")
    done = demo(LINES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n   $ ") == 11
    assert "All files are in demo/data/walk2" in done.stdout
    assert (tmp_path / "demo" / "data" / "walk2" / "log" / f"{TOPIC}-0").is_dir()
    assert not (tmp_path / "data").exists(), "a broker would take the partitions in there for its own"
    assert list(mine.parent.iterdir()) == [mine]
    assert "too few to see segments" in demo(10).stderr


def follow_each_other(segments: Segments) -> None:
    """The offsets of batches and segments have no gap, and the name of each segment is its first offset."""
    next_offset = 0
    for base_offset, batches in segments.batches.items():
        assert base_offset == next_offset
        for batch in batches:
            assert (batch["baseOffset"], batch["isvalid"]) == (next_offset, "true")
            assert batch["count"] == batch["lastOffset"] - batch["baseOffset"] + 1
            next_offset = batch["lastOffset"] + 1
        following = batches[-1]["position"] + 2 * batches[-1]["size"]
        assert base_offset == max(segments.batches) or following > SEGMENT_BYTES * 0.9  # it was full
    assert next_offset == LINES


def check_indexes(segments: Segments, walk: WalkThrough) -> None:
    """Every entry has the last offset and the position of a batch, and no entry is missing."""
    second = list(segments.batches)[1]
    batches = segments.batches[second]
    positions = {batch["lastOffset"]: batch["position"] for batch in batches}
    entries = [tuple(map(int, entry)) for entry in re.findall(r"offset: (\d+) position: (\d+)", walk.printed["index"])]
    assert len(entries) * 8 == segments.file(second, "index").stat().st_size
    due, since = [], 0
    for batch in batches:
        if since > INDEX_INTERVAL:
            due.append((batch["lastOffset"], batch["position"]))
            since = 0
        since += batch["size"]
    assert entries == due
    assert all(positions[offset] == position for offset, position in entries)

    times = [
        tuple(map(int, entry)) for entry in re.findall(r"timestamp: (\d+) offset: (\d+)", walk.printed["timeindex"])
    ]
    assert len(times) * 12 == segments.file(second, "timeindex").stat().st_size
    assert times == sorted(set(times))
    largest = max(batch["CreateTime"] for batch in batches)
    assert times[-1][0] == largest
    for timestamp, offset in times:
        [batch] = [batch for batch in batches if batch["baseOffset"] <= offset <= batch["lastOffset"]]
        assert batch["CreateTime"] == timestamp


def check_time(walk: WalkThrough, server: Server, lines: list[str]) -> None:
    """The offset is that of the first record with this timestamp or a later one."""
    timestamp = int(walk.printed["middle"])
    _, _, offset, found = walk.printed["offset"].splitlines()[1].split()
    assert int(found) == timestamp
    assert int(offset) <= LINES // 2
    around = client("consume", "--offset", "0", "--to-offset", str(LINES // 2 + 1), "--format", r"%T\n", *at(server))
    timestamps = list(map(int, around.splitlines()))
    assert next(index for index, one in enumerate(timestamps) if one >= timestamp) == int(offset)
    first = int(offset)
    assert walk.printed["read"].splitlines() == [
        f"CreateTime:{line_timestamp}\tOffset:{first + index}\t{lines[first + index]}"
        for index, line_timestamp in enumerate(
            client("consume", "--offset", offset, "--max-messages", "5", "--format", r"%T\n", *at(server)).split()
        )
    ]


class Segments:
    """The batches of each segment of a partition by base offset, from the output of dump-log."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        files = sorted(directory.glob("*.log"))
        printed = client("dump-log", "--files", ",".join(map(str, files)))
        _, *parts = re.split(r"^Dumping .*/(\d+)\.log$", printed, flags=re.MULTILINE)
        self.batches = {
            int(base_offset): [batch_of(line) for line in text.splitlines() if line.startswith("baseOffset: ")]
            for base_offset, text in zip(parts[::2], parts[1::2], strict=True)
        }

    def file(self, base_offset: int, suffix: str) -> Path:
        return self._directory / f"{base_offset:020}.{suffix}"


def batch_of(line: str) -> dict[str, int | str]:
    pairs = re.findall(r"(\w+): (\S+)", line)
    return {name: int(value) if value.lstrip("-").isdecimal() else value for name, value in pairs}


def at(server: Server) -> tuple[str, ...]:
    return ("--bootstrap-server", server.bootstrap, "--topic", TOPIC)


def client(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "odradek.client", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
