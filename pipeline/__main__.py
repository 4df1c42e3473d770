"""`python -m pipeline`; also what spark-submit is given to run (docs/pipeline.md)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType

from odradek.pipeline.jobs import TERMINATED, run


def main(arguments: Sequence[str], program: str = "python -m pipeline") -> int:
    """Run a command line as a process and return its exit status. SIGTERM ends it as Ctrl-C does."""
    was_told_to_end = False

    def end_as_by_ctrl_c(_number: int, _frame: FrameType | None) -> None:
        # What a job has started, other processes too, is ended on its way out, which a SIGTERM alone would not go.
        # No SIGINT is raised for it: a shell starts what runs in the background with that ignored. `timeout` sends it
        # twice, and the second must not cut that way short.
        nonlocal was_told_to_end
        if not was_told_to_end:
            was_told_to_end = True
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end_as_by_ctrl_c)
    status = run(arguments, program)
    return TERMINATED if was_told_to_end else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], f"python -m {__spec__.parent}" if __spec__ else "python -m pipeline"))
