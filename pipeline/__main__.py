"""`python -m pipeline`; also what spark-submit is given to run (docs/pipeline.md)."""

from __future__ import annotations

import sys

from pipeline.jobs import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
