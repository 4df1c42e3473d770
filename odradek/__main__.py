"""The command `odradek`, and `python -m odradek`: `odradek.commands` finds the command that was typed."""

from __future__ import annotations

import sys
from typing import NoReturn

from odradek.commands import run


def main() -> NoReturn:
    """Run the command of this process's arguments, and exit with its status."""
    # An installed script keeps its name, whatever it was renamed to; `-m` leaves the path of this file.
    program = "python -m odradek" if sys.argv[0].endswith("__main__.py") else "odradek"
    sys.exit(run(sys.argv[1:], program))


if __name__ == "__main__":
    main()
