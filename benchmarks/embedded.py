"""The interpreter in which `comparison` starts embedded brokers: a line of input for each step, a line of JSON back.

| step | result |
|---|---|
| 1 | `memory`: resident MB before the import of the broker |
| 2, 4, … | `start`: seconds from the import on; `port` |
| 3, 5, … | `stop`: seconds |
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def _tell(**answer: float) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    steps = iter(sys.stdin.readline, "")
    next(steps)
    _tell(memory=int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
    for _ in steps:
        began = time.perf_counter()
        from odradek.broker.testing.threaded import ThreadedBroker

        broker = ThreadedBroker()
        broker.start()
        _tell(start=time.perf_counter() - began, port=broker.port)
        next(steps)
        began = time.perf_counter()
        broker.close()
        _tell(stop=time.perf_counter() - began)


if __name__ == "__main__":
    main()
