"""One copier, which runs until it is killed or cannot continue."""

from __future__ import annotations

import sys
from importlib import import_module

from tests.crash.copiers import Job


def main() -> int:
    client, bootstrap, transactional_id, name, session_ms = sys.argv[1:]
    job = Job(bootstrap, transactional_id, name, int(session_ms))
    status: int = import_module(f"tests.crash.copiers.{client}").copy(job)
    return status


if __name__ == "__main__":
    sys.exit(main())
