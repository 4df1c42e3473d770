"""Jars from Maven Central, copied into `.peers/` once a checkout."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.peers.availability import PEERS, installing, program, unavailable

_ATTEMPTS = 2  # a remote repository may fail once


def libraries(name: str, pom: Path, settings: Path | None = None) -> Path:
    """The directory `name` of `.peers/`, with the jars that `pom` depends on; `settings` are those of Maven."""
    directory = PEERS / name
    if not directory.is_dir():
        maven = program("mvn", "maven")
        with installing():
            complaint = "" if directory.is_dir() else _fetch(maven, directory, pom, settings)
        if complaint:
            unavailable(f"Maven could not fetch {name}: {complaint}")
    return directory


@cache
def _fetch(maven: str, directory: Path, pom: Path, settings: Path | None) -> str:
    """Fetch the jars; return the error, or an empty text. Cached, so that a failure takes its time only once."""
    command = [maven, "-q", "-B", "-U", "-f", str(pom), *(["-s", str(settings)] if settings else [])]
    with tempfile.TemporaryDirectory(dir=PEERS) as unfinished:
        for attempt in range(_ATTEMPTS):
            done = subprocess.run(
                [*command, "dependency:copy-dependencies", f"-DoutputDirectory={unfinished}/jars"],
                capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode == 0:
                break
            if attempt == _ATTEMPTS - 1:
                return (done.stdout + done.stderr).strip()[-2000:]
        shutil.move(f"{unfinished}/jars", directory)
    return ""
