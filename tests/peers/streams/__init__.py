"""An application of Kafka Streams in a Java machine of its own: `CountWords.java`, compiled once for each change.

`CountWords` reads words and writes each with the number of its occurrences so far; its documentation has the topics.
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.peers import java, maven
from tests.peers.availability import PEERS, installing

INPUT, OUTPUT = "words", "counts"

_HERE = Path(__file__).parent
_MAIN_CLASS = "CountWords"
_OPTIONS = (*java.QUICK_START[:-1], "-Xmx96m")
_RUNNING = "RUNNING"
_CLOSE_SECONDS = 60


class Application:
    """One instance of the application. Instances with the same id share the partitions of its topics.

    `directory` keeps the state, and the id of the instance, over its restarts. `start` may follow `kill` and `stop`.
    """

    def __init__(self, application_id: str, bootstrap: str, directory: Path, settings: Mapping[str, str] = {}) -> None:
        directory.mkdir(parents=True)
        self._output = directory / "output.log"
        every = {
            "application.id": application_id,
            "bootstrap.servers": bootstrap,
            "state.dir": str(directory / "state"),
        }
        self._command = java.command(
            _MAIN_CLASS,
            *(f"{name}={value}" for name, value in {**every, **settings}.items()),
            options=_OPTIONS,
            libraries=[*_libraries(), _jar()],
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start a process, and do not wait until it runs."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """SIGKILL; does nothing if there is no process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait until the application has closed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_CLOSE_SECONDS)

    def check(self) -> None:
        """Fail if the application has ended by itself."""
        assert self._process is not None
        status = self._process.poll()
        if status is not None:
            raise AssertionError(f"the application ended with {status}\n{self.printed()[-8000:]}")

    def times_running(self) -> int:
        """How often the application has reported that it runs, in all its processes."""
        return self.printed().splitlines().count(_RUNNING)

    def printed(self) -> str:
        return self._output.read_text(errors="replace")


def _libraries() -> list[Path]:
    directory = maven.libraries(f"kafka-streams-{java.KAFKA_VERSION}", _HERE / "pom.xml")
    return sorted(directory.glob("*.jar"))


@cache
def _jar() -> Path:
    """The compiled application; its name contains a checksum of the source."""
    source = _HERE / f"{_MAIN_CLASS}.java"
    jar = PEERS / f"count-words-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.jar"
    jars = [*maven.libraries(f"kafka-{java.KAFKA_VERSION}", java.HERE / "pom.xml").glob("*.jar"), *_libraries()]
    compiler = java.command("org.eclipse.jdt.internal.compiler.batch.Main", libraries=_libraries())
    with installing(), tempfile.TemporaryDirectory(dir=PEERS) as unfinished:
        if not jar.exists():
            arguments = ["-17", "-nowarn", "-cp", ":".join(map(str, jars)), "-d", unfinished, str(source)]
            subprocess.run([*compiler, *arguments], check=True)
            _pack(Path(unfinished), jar)
    return jar


def _pack(directory: Path, jar: Path) -> None:
    made = directory / "made.jar"
    with zipfile.ZipFile(made, "w") as archive:
        for each in directory.glob("*.class"):
            archive.write(each, each.name)
    made.rename(jar)
