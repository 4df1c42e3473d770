"""The processes of the copiers: start, replace and kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.copiers import REPLACE_ME


class CopyError(AssertionError):
    """The copy differs from the original, or is not continued."""


@dataclass
class Slot:
    """The place of one copier: its client, and the process that runs now."""

    client: str
    transactional_id: str
    process: subprocess.Popen[bytes]


@dataclass
class Copiers:
    """The processes; each is the leader of a process group, which ends with it (Java is a process of its own)."""

    bootstrap: str
    output: Path
    session_ms: int
    ended: int = 0
    slots: list[Slot] = field(default_factory=list)
    _started: int = 0

    def start(self, clients: Sequence[str]) -> None:
        for number, client in enumerate(clients):
            transactional_id = f"copier-{number}"
            self.slots.append(Slot(client, transactional_id, self._process(client, transactional_id)))

    def _process(self, client: str, transactional_id: str) -> subprocess.Popen[bytes]:
        self._started += 1
        name = f"{client}-{self._started}"
        arguments = [client, self.bootstrap, transactional_id, name, str(self.session_ms)]
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.crash.copiers", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def replace(self, slot: Slot, *, other_id: bool) -> None:
        if other_id:
            slot.transactional_id = f"copier-after-{self._started}"
        slot.process = self._process(slot.client, slot.transactional_id)

    def replace_ended(self) -> None:
        """Raises CopyError if a copier has ended by an error that it does not expect."""
        for slot in self.slots:
            status = slot.process.poll()
            if status is None:
                continue
            if status not in (REPLACE_ME, -signal.SIGALRM):
                printed = self.output.read_text(errors="replace")
                raise CopyError(f"a copier with {slot.client} ended with {status}\n{printed[-8000:]}")
            self.ended += 1
            send_signal(slot.process, signal.SIGKILL)  # its Java
            self.replace(slot, other_id=False)

    def kill_all(self) -> None:
        for slot in self.slots:
            kill(slot.process)


def kill(process: subprocess.Popen[bytes]) -> None:
    send_signal(process, signal.SIGKILL)
    process.wait()


def send_signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
