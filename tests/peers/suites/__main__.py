"""`python -m tests.peers.suites [SUITE …]`: run the clients' own suites, each against a fresh broker.

Prints a line for each suite, and each failed test with the end of its output. The status is 1 if an unknown test
failed, or if a known failure passed. The output of the suites and the broker is kept under `.peers/suites/`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.peers import odradek
from tests.peers.availability import PEERS
from tests.peers.server import Server, free_port
from tests.peers.suites.franz_go import FranzGo
from tests.peers.suites.go_security import GoSecurity
from tests.peers.suites.go_transactions import GoTransactions
from tests.peers.suites.kafka_go import KafkaGo
from tests.peers.suites.kafka_python import KafkaPython
from tests.peers.suites.kombu import Kombu
from tests.peers.suites.outcomes import Expectations, Outcomes, expectations_of, verdict_on
from tests.peers.suites.rskafka import Rskafka
from tests.peers.suites.sarama import Sarama
from tests.peers.suites.suite import Suite
from tests.peers.suites.watermill_kafka import WatermillKafka

SUITES: dict[str, Callable[[], Suite]] = {
    FranzGo.name: FranzGo,
    Sarama.name: Sarama,
    GoTransactions.name: GoTransactions,
    GoSecurity.name: GoSecurity,
    KafkaGo.name: KafkaGo,
    KafkaPython.name: KafkaPython,
    WatermillKafka.name: WatermillKafka,
    Rskafka.name: Rskafka,
    Kombu.name: Kombu,
}
LOGS = PEERS / "suites"
_LAST_LINES = 25


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.suites", description="run the clients' own suites")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; all of them by default")
    parser.add_argument("--known", action="store_true", help="list the known failures, with their reasons")
    arguments = parser.parse_args()
    unknown = set(arguments.suites) - SUITES.keys()
    if unknown:
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    chosen = arguments.suites or list(SUITES)
    if arguments.known:
        _list_known(chosen)
        return
    results = [_run(SUITES[name]()) for name in chosen]
    raise SystemExit(0 if all(results) else 1)


def _list_known(names: list[str]) -> None:
    for name in names:
        for test, reason in expectations_of(name).reasons.items():
            print(f"{name}: {test}: {reason}")


def _run(suite: Suite) -> bool:
    """Run one suite, print its result, and return whether it was expected."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{suite.name}.log"
    log.write_text("")
    expected = expectations_of(suite.name)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"odradek-{suite.name}-") as directory:
        broker = _broker(suite, Path(directory) / "broker")
        try:
            outcomes = _outcomes(suite, Path(directory) / "suite", broker, log, expected)
        finally:
            broker.kill()
            (LOGS / f"{suite.name}.broker.log").write_text(broker.printed())
    return _report(suite, outcomes, expected, time.monotonic() - began)


def _broker(suite: Suite, directory: Path) -> Server:
    port = free_port()
    return odradek.prepare(directory, suite.properties(port), port=port).start()


def _outcomes(suite: Suite, directory: Path, broker: Server, log: Path, expected: Expectations) -> Outcomes:
    suite.prepare(directory, broker)
    outcomes = suite.run(directory, broker, log, expected.not_run, ())
    failed = verdict_on(outcomes, expected).failed
    if failed:
        print(f"{suite.name}: once more, since machines stall: {', '.join(failed)}", flush=True)
        again = suite.run(directory, broker, log, expected.not_run, failed)
        outcomes |= again
    return outcomes


def _report(suite: Suite, outcomes: Outcomes, expected: Expectations, seconds: float) -> bool:
    verdict = verdict_on(outcomes, expected)
    print(f"{suite.name} {suite.version}: {verdict} ({seconds:.0f} s)", flush=True)
    for name in verdict.failed:
        print(f"  failed: {name}")
        print("".join(f"    {line}\n" for line in outcomes[name].output.splitlines()[-_LAST_LINES:]), end="")
    for name in verdict.stale:
        print(f"  known to fail, and did not: {name}; take it out of known_failures.toml")
    return verdict.is_expected


if __name__ == "__main__":
    main()
