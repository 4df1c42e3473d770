"""`python -m client`: the process of a command of the client. `odradek` runs those commands by `main`, too."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType

TERMINATED = 143


def main(arguments: Sequence[str], program: str = "python -m client") -> int:
    """Run a command line as a process and return its exit status. SIGTERM ends it as Ctrl-C does."""
    was_terminated = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        # Service managers send SIGTERM where people type Ctrl-C: a member of a group commits and leaves.
        nonlocal was_terminated
        was_terminated = True
        signal.raise_signal(signal.SIGINT)

    try:
        signal.signal(signal.SIGTERM, interrupt)
        from odradek.client.cli import run

        status = run(arguments, program)
    except KeyboardInterrupt:  # during imports; `run` catches later ones
        status = 130
    return TERMINATED if was_terminated else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], f"python -m {__spec__.parent}" if __spec__ else "python -m client"))
