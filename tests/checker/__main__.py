"""Run the checker: `python -m tests.checker --seeds 20 --faults 10`, on `--server apache` as well."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.checker.analysis import find_anomalies
from tests.checker.mutants import MUTANTS, mutated
from tests.checker.workload import Workload
from tests.interop.conftest import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=sorted(KINDS), default="odradek")
    parser.add_argument("--seeds", type=int, default=10, help="the number of runs")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=10, help="kills and pauses of the server in a run")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="give the server a defect")
    chosen = parser.parse_args()
    failed = 0
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        with tempfile.TemporaryDirectory(prefix="checker-") as directory:
            server = KINDS[chosen.server](Path(directory))
            if chosen.mutant:
                server = mutated(server, chosen.mutant)
            server.start()
            try:
                history = Workload(server, seed, chosen.faults).run()
            finally:
                server.kill()
        anomalies = find_anomalies(history)
        failed += bool(anomalies)
        print(f"seed {seed}: {len(history.transactions)} transactions, {len(anomalies)} anomalies", flush=True)
        for anomaly in anomalies[:10]:
            print(f"  {anomaly.kind}: {anomaly.what}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
