"""Run the checker: `python -m tests.checker --seeds 20 --faults 10`, on `--server apache` or `cluster` as well."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.checker.analysis import find_anomalies
from tests.checker.mutants import MUTANTS, mutated
from tests.checker.nemesis import Cluster, Nemesis, OneServer
from tests.checker.workload import IN_CLUSTER, PRODUCERS, Workload
from tests.cluster.brokers import running
from tests.interop.conftest import KINDS
from tests.peers.server import Server

_CLUSTER = "cluster"
Change = Callable[[Server], Server]


@contextmanager
def _started(kind: str, directory: Path, changed: Change) -> Iterator[Nemesis]:
    """Start what the faults are done to; kill it at the end."""
    if kind == _CLUSTER:
        with running(directory, changed) as brokers:
            yield Cluster(brokers, [transactional_id for transactional_id, _ in IN_CLUSTER])
        return
    server = changed(KINDS[kind](directory)).start()
    try:
        yield OneServer(server)
    finally:
        server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=[*sorted(KINDS), _CLUSTER], default="odradek")
    parser.add_argument("--seeds", type=int, default=10, help="the number of runs")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=10, help="kills and pauses of the server in a run")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="give the server a defect")
    chosen = parser.parse_args()
    changed: Change = partial(mutated, name=chosen.mutant) if chosen.mutant else lambda server: server
    producers = IN_CLUSTER if chosen.server == _CLUSTER else PRODUCERS
    failed = 0
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        with (
            tempfile.TemporaryDirectory(prefix="checker-") as directory,
            _started(chosen.server, Path(directory), changed) as nemesis,
        ):
            history = Workload(nemesis, seed, chosen.faults, producers=producers).run()
        anomalies = find_anomalies(history)
        failed += bool(anomalies)
        print(f"seed {seed}: {len(history.transactions)} transactions, {len(anomalies)} anomalies", flush=True)
        for anomaly in anomalies[:10]:
            print(f"  {anomaly.kind}: {anomaly.what}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
