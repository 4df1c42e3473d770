"""`python -m client`, and the console script `odradek`."""

from __future__ import annotations

import signal
import sys
from types import FrameType

TERMINATED = 143


def main() -> None:
    """Run the command of this process's arguments, and exit with its status."""
    was_told_to_end = False

    def end_as_by_ctrl_c(_number: int, _frame: FrameType | None) -> None:
        # Service managers stop with SIGTERM what people stop by Ctrl-C: a member of a group commits, and leaves.
        nonlocal was_told_to_end
        was_told_to_end = True
        signal.raise_signal(signal.SIGINT)

    try:
        signal.signal(signal.SIGTERM, end_as_by_ctrl_c)
        from odradek.client.cli import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are still being imported
        status = 130
    sys.exit(TERMINATED if was_told_to_end else status)


if __name__ == "__main__":
    main()
