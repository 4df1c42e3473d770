"""The output of a command as text, for the files beside the cases.

Standard output, a line `=== standard error` and what stood there, a line `=== failed` if the exit status was 1.
Absolute paths begin with DIR. Of a failure what is said last on standard error (by Kafka: a stack trace) is left out,
since it is not the same.
"""

from __future__ import annotations

from pathlib import Path

from tests.inspection.dump.cases import Case

RECORDED = Path(__file__).parent / "recorded"


def recorded(case: Case) -> bytes:
    return (RECORDED / f"{case.name}.txt").read_bytes()


def recording(out: bytes, err: bytes, directory: Path, *, failed: bool) -> bytes:
    text = out + b"=== standard error\n" + err + (b"=== failed\n" if failed else b"")
    return text.replace(bytes(directory), b"DIR")


def write_files(case: Case, directory: Path) -> None:
    for name, data in case.files().items():
        (directory / name).write_bytes(data)
