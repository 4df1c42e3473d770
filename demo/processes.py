"""Processes that are started in order, watched, started again, and ended in order."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_START_SECONDS = 60
_STOP_SECONDS = 40
_WATCH_SECONDS = 0.2


class StartError(Exception):
    """A process did not start; the message has the reason, or the file with its output."""


class _Program(NamedTuple):
    """A command, the file with its output, and the page that shows that it serves."""

    command: Sequence[str]
    output: Path
    health_url: str


class Processes:
    """The processes by name, in the order of their start."""

    def __init__(self) -> None:
        self._programs: dict[str, _Program] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str], output: Path, health_url: str) -> None:
        """Start a process, and return when its page answers. Raises StartError."""
        self._programs[name] = _Program(command, output, health_url)
        self._start(name)

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def watch(self) -> None:
        """Print each process that ends, and start those that have ended at each Enter, until interrupted."""
        running = dict(self._processes)
        while True:
            for name, process in tuple(running.items()):
                if process.poll() is not None:
                    del running[name]
                    _tell(f"{name} has ended (status {process.returncode})")
            if _enter_was_pressed():
                for name in [each for each in self._programs if each not in running]:
                    self._start_again(name)
                    running[name] = self._processes[name]

    def stop(self) -> None:
        """End the brokers, which need etcd for it, then etcd. Kills what does not end, and all if interrupted again."""
        _tell("\nstopping (Ctrl-C again: at once)")
        try:
            for names in ([each for each in self._processes if each != "etcd"], ["etcd"]):
                self._end([self._processes[name] for name in names if name in self._processes])
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()

    def _start(self, name: str) -> None:
        program = self._programs[name]
        with program.output.open("ab") as file:
            # In a session of its own: Ctrl-C is for this program alone, which stops the processes in order.
            self._processes[name] = process = subprocess.Popen(
                program.command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        give_up_at = time.monotonic() + _START_SECONDS
        while not _answers(program.health_url):
            if process.poll() is not None:
                raise StartError(f"{name} has ended with status {process.returncode}: see {program.output}")
            if time.monotonic() > give_up_at:
                raise StartError(f"{name} does not serve after {_START_SECONDS} s: see {program.output}")
            time.sleep(0.1)

    def _start_again(self, name: str) -> None:
        try:
            self._start(name)
        except StartError as error:
            _tell(str(error))
        else:
            _tell(f"{name} serves again (kill -9 {self.pid(name)})")

    @staticmethod
    def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            process.terminate()
        give_up_at = time.monotonic() + _STOP_SECONDS
        for process in processes:
            try:
                process.wait(max(0.0, give_up_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def _tell(text: str) -> None:
    """Print a line, unless the terminal is closed: the processes must end then, too."""
    try:
        print(text, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no later print, nor that at the end, fails


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - the scheme is http
            return True
    except (urllib.error.URLError, OSError):
        return False


def _enter_was_pressed() -> bool:
    """Wait for a moment; return True if a line was typed meanwhile."""
    if not sys.stdin.isatty():
        time.sleep(_WATCH_SECONDS)
        return False
    readable, _, _ = select.select([sys.stdin], [], [], _WATCH_SECONDS)
    return bool(readable) and bool(sys.stdin.readline())
