"""`odradek pipeline`, and `python -m pipeline` in a checkout; spark-submit runs this file, too (docs/pipeline.md)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType

from odradek.pipeline.jobs import TERMINATED, run


def main(arguments: Sequence[str], program: str = "python -m pipeline") -> int:
    """Run a command line as a process and return its exit status. SIGTERM ends it as Ctrl-C does."""
    is_terminated = False

    def end_as_by_ctrl_c(_number: int, _frame: FrameType | None) -> None:
        # A job ends the processes that it has started when this exception unwinds its stack; SIGTERM's default action
        # would not. SIGINT would not do: shells start background processes with SIGINT ignored. `timeout` sends SIGTERM
        # twice, and the second one must not interrupt the unwinding.
        nonlocal is_terminated
        if not is_terminated:
            is_terminated = True
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end_as_by_ctrl_c)
    status = run(arguments, program)
    return TERMINATED if is_terminated else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], f"python -m {__spec__.parent}" if __spec__ else "python -m pipeline"))
