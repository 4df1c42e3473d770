"""Runs of Kafka's DumpLogSegments with the arguments of our command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.inspection.dump.cases import Case
from tests.inspection.dump.recording import recording, write_files
from tests.peers import java

# Java 17 and later ones have different names for it; without, the encoding is that of the terminal.
UTF8 = [f"-D{prefix}{stream}.encoding=UTF-8" for stream in ("stdout", "stderr") for prefix in ("", "sun.")]


def dump(directory: Path, files: str, options: Sequence[str]) -> bytes:
    """Dump files of a directory. Kafka's tool may change them."""
    arguments = ("--files", files, *options)
    command = java.command(java.DUMP_LOG_SEGMENTS, *arguments, options=(*java.QUICK_START, *UTF8))
    done = subprocess.run(command, cwd=directory, capture_output=True, timeout=60, check=False)
    err, failure, _ = done.stderr.partition(b'Exception in thread "main" ')
    assert bool(failure) == bool(done.returncode), done.stderr.decode()
    return recording(done.stdout, err, directory, failed=bool(failure))


def record(case: Case, directory: Path) -> bytes:
    """Dump the files of a case, which are written to `directory`."""
    write_files(case, directory)
    return dump(directory, case.dumped, case.options)
