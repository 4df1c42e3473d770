"""kcat: librdkafka 2.0 on the command line, the oldest client here that people still use daily."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.peers.availability import program


def run(bootstrap: str, *arguments: str, stdin: str | bytes = b"", timeout: float = 30) -> str:
    """Run kcat to its end and return its stdout; fails with its stderr if the exit status is not 0."""
    done = subprocess.run(
        [program("kcat", "kcat"), "-b", bootstrap, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"kcat {' '.join(arguments)} exited with {done.returncode}\n{done.stderr.decode()}")
    return done.stdout.decode()


def produce(bootstrap: str, topic: str, lines: str | bytes, *arguments: str) -> None:
    run(bootstrap, "-P", "-t", topic, *arguments, stdin=lines)


def consume(bootstrap: str, topic: str, *arguments: str, partition: int = 0) -> list[dict[str, Any]]:
    """Every record of a partition up to its end, in kcat's JSON; `-o` in `arguments` is the start."""
    out = run(bootstrap, "-C", "-t", topic, "-p", str(partition), "-e", "-q", "-J", *arguments)
    return [json.loads(line) for line in out.splitlines()]


def metadata(bootstrap: str, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(bootstrap, "-L", "-J", *arguments))
    return answer
