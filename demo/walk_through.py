"""The steps: create a topic with small segments, fill it from a file, print its log, find a time, read from there.

Each step prints an explanation, a command, and the output of the command. `WalkThrough.printed` keeps the output by the
name of the step, so that tests can check it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SHOWN = 8  # lines of a command's output; the rest is counted
_WIDTH = 160  # characters of a line

SEGMENT_BYTES = 1048576
TOPIC = "hello"


class StepError(Exception):
    """A command failed; the message names it and its exit status."""


class WalkThrough:
    """One walk through a log of `lines` records, with the broker at `bootstrap` and its log directory.

    Less than 100,000 lines make only one segment. The file of lines is written into `directory`, which must exist.
    """

    def __init__(self, bootstrap: str, log_dir: Path, directory: Path, lines: int) -> None:
        self.printed: dict[str, str] = {}
        self._odradek = f"{shown_interpreter()} -m odradek"
        self._at = f"--bootstrap-server {bootstrap}"
        self._partition = log_dir / f"{TOPIC}-0"
        self._directory = directory
        self._lines = lines
        self._number = 0

    def run(self) -> None:
        """Walk from the first step to the last. Raises StepError."""
        its = f"{self._at} --topic {TOPIC}"
        self._step(
            "create",
            "A topic of one partition. Its log is a row of files of at most 1 MiB each: the segments.",
            f"{self._odradek} topics create {its} --partitions 1 --config segment.bytes={SEGMENT_BYTES}",
        )
        self._step("lines", f"A file of {self._lines:,} lines.", _lines_command(self._lines, self._file))
        self._step(
            "produce",
            "Each line becomes a record. Records are sent and stored in batches.",
            f"{self._odradek} produce {its} --file {self._file} --summary",
        )
        self._step(
            "segments",
            "A segment is named by the offset of its first record. Beside the .log are two sparse indexes: from"
            " offsets to positions in the .log, and from timestamps to offsets.",
            f"ls -l {self._partition}",
        )
        first, second = (self._partition / f"{name:020}" for name in self._base_offsets()[:2])
        self._step(
            "log",
            "The first segment, batch by batch. The checksum, CRC-32C, shows whether a batch is as it was written.",
            f"{self._odradek} dump-log --files {first}.log",
        )
        self._step(
            "index",
            "The second segment's index: the last offset of a batch, and the position of the batch in the .log.",
            f"{self._odradek} dump-log --files {second}.index",
        )
        self._step(
            "timeindex",
            "Its time index: the latest timestamp so far, and the offset of the record that has it.",
            f"{self._odradek} dump-log --files {second}.timeindex",
        )
        self._find_and_read(its)

    @property
    def _file(self) -> Path:
        return self._directory / "lines.txt"

    def _find_and_read(self, its: str) -> None:
        middle = self._lines // 2
        self._step(
            "middle",
            f"The timestamp, in milliseconds, of the record in the middle, at offset {middle:,}:",
            f"{self._odradek} consume {its} --offset {middle} --max-messages 1 --format '%T\\n' 2>/dev/null",
        )
        timestamp = int(self.printed["middle"])
        self._step(
            "offset",
            "The first record of that millisecond. The indexes find it without reading the whole log.",
            f"{self._odradek} topics offsets {its} --time {timestamp}",
        )
        offset = int(self.printed["offset"].split()[6])
        self._step(
            "read",
            "The records from that offset on:",
            f"{self._odradek} consume {its} --offset {offset} --max-messages 5 --print offset,timestamp,value",
        )

    def _base_offsets(self) -> list[int]:
        return sorted(int(file.stem) for file in self._partition.glob("*.log"))

    def _step(self, name: str, text: str, command: str) -> None:
        self._number += 1
        print(f"\n{self._number}. {text}\n\n   $ {command}", flush=True)
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
        self.printed[name] = done.stdout
        _print_some((done.stdout + done.stderr).splitlines())
        if done.returncode:
            raise StepError(f"step {self._number} failed with exit status {done.returncode}")


def shown_interpreter() -> Path:
    """Return the path of this Python, relative if it is below the current directory."""
    interpreter = Path(sys.executable)
    here = Path.cwd()
    return interpreter.relative_to(here) if interpreter.is_relative_to(here) else interpreter


def _lines_command(count: int, file: Path) -> str:
    return f"seq {count} | sed 's/^/hello odradek /' > {file} && head -n 3 {file}"


def _print_some(lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        print(f"   {line if len(line) <= _WIDTH else line[: _WIDTH - 1] + '…'}")
    if len(lines) > _SHOWN:
        print(f"   … and {len(lines) - _SHOWN:,} lines more")
