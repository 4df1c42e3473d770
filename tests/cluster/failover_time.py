"""Measure how long a partition is without a leader when its leader is killed.

    python -m tests.cluster.failover_time --kills 10

Three brokers and three members of etcd on this machine, `broker.session.timeout.ms` as given. Each time runs from the
SIGKILL of the leader to

| column | the first time that |
|---|---|
| elected | another broker answers Metadata with the new leader |
| written | librdkafka has an acknowledgement of a record that it got after the kill |
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.brokers import Brokers, running

TOPIC = "measured"
_LIMIT = 120.0


def measure(brokers: Brokers, producer: Producer) -> tuple[float, float]:
    """Kill the leader, and return the seconds of both columns."""
    dead = brokers.leader(TOPIC)
    acknowledged: list[float] = []
    _write(producer, [])  # the producer is connected to the leader
    assert producer.flush(_LIMIT) == 0
    began = time.monotonic()
    brokers.kill(dead)
    _write(producer, acknowledged)
    while brokers.view().topics[TOPIC][0].leader in (dead, -1):
        producer.poll(0.01)
    elected = time.monotonic() - began
    assert producer.flush(_LIMIT) == 0
    return elected, acknowledged[0] - began


def _write(producer: Producer, acknowledged: list[float]) -> None:
    def delivered(error: object, _: object) -> None:
        assert error is None, error
        acknowledged.append(time.monotonic())

    producer.produce(TOPIC, b"record", partition=0, on_delivery=delivered)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.failover_time", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--session-ms", type=int, default=3000)
    arguments = parser.parse_args()
    results: list[tuple[float, float]] = []
    with (
        tempfile.TemporaryDirectory(prefix="failover-time-") as directory,
        running(Path(directory), broker_session_timeout_ms=str(arguments.session_ms)) as brokers,
    ):
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(_LIMIT)
        producer = Producer({"bootstrap.servers": brokers.bootstrap, "enable.idempotence": True, "log_level": 0})
        for kill in range(1, arguments.kills + 1):
            results.append(measure(brokers, producer))
            print(f"kill {kill:2}: elected {results[-1][0]:.2f} s, written {results[-1][1]:.2f} s", flush=True)
            brokers.heal()
    for name, times in zip(("elected", "written"), zip(*results, strict=True), strict=True):
        print(f"{name}: median {median(times):.2f} s, max {max(times):.2f} s")


if __name__ == "__main__":
    main()
