"""The processes of members: their commands, and the files that they write."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.peers import java, maven
from tests.peers.availability import PEERS, installing, program

HERE = Path(__file__).parent
JAVA_VERSION = "4.4.0"
"""That of Java's consumer, in `pom.xml`."""
_OPTIONS = (*java.FOR_SECONDS.split(), "-Xmx64m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


class Variant(NamedTuple):
    """A protocol; `assignor` matters with the classic one, in which it decides between eager and cooperative."""

    name: str
    protocol: str
    assignor: str


VARIANTS = (
    Variant("classic, eager (range)", "classic", "range"),
    Variant("classic, cooperative-sticky", "classic", "cooperative-sticky"),
    Variant("consumer", "consumer", ""),
)


def ours() -> list[str]:
    """The command of a member with the bundled consumer, without its arguments."""
    return [sys.executable, "-m", "benchmarks.rebalances.member"]


@cache
def javas() -> list[str]:
    """The command of a member with Java's consumer, without its arguments. Fetches and compiles at first."""
    jars = maven.libraries(f"rebalances-{JAVA_VERSION}", HERE / "pom.xml")
    source = HERE / "Member.java"
    made = PEERS / f"rebalances-member-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    with installing(), tempfile.TemporaryDirectory(dir=PEERS) as temporary:
        if not made.exists():
            unfinished = Path(temporary, "made")
            compiler, archiver = (program(name, "default-jdk-headless") for name in ("javac", "jar"))
            subprocess.run([compiler, "-cp", f"{jars}/*", "-d", str(unfinished), str(source)], check=True)
            subprocess.run([archiver, "cf", str(unfinished / "member.jar"), "-C", str(unfinished), "."], check=True)
            unfinished.rename(made)
            # An archive of the classes that a member loads without a broker: it halves the time of each start.
            archiving = _java(jars, made, "-XX:ArchiveClassesAtExit={}")
            arguments = ["127.0.0.1:1", "none", ".*", "classic", "range", "auto", "default.api.timeout.ms=1000"]
            settings = ["request.timeout.ms=500"]
            subprocess.run([*archiving, *arguments, *settings], check=True, capture_output=True, input=b"")
    return _java(jars, made, "-XX:SharedArchiveFile={}")


def _java(jars: Path, made: Path, archive_option: str) -> list[str]:
    options = [*_OPTIONS, "-cp", f"{jars}/*:{made}/member.jar", archive_option.format(made / "classes.jsa")]
    return [program("java", "default-jre-headless"), *options, "Member"]


CLIENTS: dict[str, Callable[[], list[str]]] = {"ours": ours, "java": javas}


class Process:
    """A member's process, whose events go to a file."""

    def __init__(self, name: str, directory: Path, command: list[str]) -> None:
        self.name = name
        self.is_expected_to_end = False
        self.is_paused = False
        self._events = directory / f"{name}.jsonl"
        self._complaints = directory / f"{name}.err"
        with self._events.open("wb") as events, self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=events, stderr=complaints)

    def order(self, command: str) -> None:
        """Send a command. A member that has crashed gets none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return

    def join(self) -> None:
        self.order("join")

    def close(self) -> None:
        self.is_expected_to_end = True
        self.order("close")

    def pause(self) -> None:
        self.is_paused = True
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_paused = False
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.is_expected_to_end = True
        self._process.kill()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def crash(self) -> str:
        """What the process printed to stderr if it ended without being asked, or badly; empty otherwise."""
        status = self._process.poll()
        if status is None or (self.is_expected_to_end and status in (0, -signal.SIGKILL)):
            return ""
        return f"exit status {status}: {self._complaints.read_text(errors='replace')[-500:]}"

    def end(self) -> None:
        """Kill the process if it still runs, and release its pipe."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            return

    def events(self) -> Iterator[dict[str, Any]]:
        """The events so far, with the member's name. A line that a kill cut is skipped."""
        for line in self._events.read_text().splitlines(keepends=True):
            if line.endswith("}\n"):
                yield {"member": self.name, **json.loads(line)}
