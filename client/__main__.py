"""`python -m client`, and the console script `odradek`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command of this process's arguments, and exit with its status."""
    try:
        from client.cli import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are still being imported
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
