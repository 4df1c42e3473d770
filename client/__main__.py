"""`python -m client`, and the console script `odradek`."""

from __future__ import annotations

import sys

from client.cli import run


def main() -> None:
    """Run the command of this process's arguments, and exit with its status."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
