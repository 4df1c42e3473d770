"""A suite of 100 tests with a broker: `python -m benchmarks.testing`, and with `--kafka` beside Apache Kafka.

Each test creates a topic, sends a record with a new producer, reads it with a new consumer of a new group, commits, and
checks record and offset, with one client after the other. librdkafka, and so confluent-kafka, waits 150 ms by itself
in each test, whatever the broker: before it connects to a broker that it learns of, and before a new group's first
ListOffsets.

With Odradek the fixture `kafka` starts a broker in the process of the tests and restores its state after each test.
With Apache Kafka the same file runs with `--kafka=HOST:PORT`, on a JVM that is started for the suite as Kafka's own
scripts do; what a container adds is not there.

| figure | seconds |
|---|---|
| start | Apache Kafka: formatting its directory, and from the start of the JVM until it accepts connections |
| first | the first test with its fixtures; for Odradek the import and the start of the broker are in it |
| others | the next 100 tests with their fixtures, and the stop of our broker |
| all | the process of pytest, with Apache Kafka's start |

The two take turns. Medians are printed, lowest and highest in brackets.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.comparison import format_cell
from benchmarks.side_by_side.contest import KAFKA_OPTIONS
from odradek.broker.build_info import is_compiled
from tests.peers import apache

ROUNDS = 5
TESTS = 100
REPOSITORY = Path(__file__).resolve().parents[1]

SUITE = """
import asyncio, json, time
from pathlib import Path

import pytest

ENDS = []


@pytest.fixture(scope="session", autouse=True)
def times():
    began = time.perf_counter()
    yield
    ENDS.append(time.perf_counter())
    Path(__file__).with_name("times.json").write_text(json.dumps([end - began for end in ENDS]))


@pytest.fixture(autouse=True)
def began():
    ENDS.append(time.perf_counter())  # the end of the test before, with its fixtures


CLIENT

@pytest.mark.parametrize("number", range(TESTS + 1))
def test_an_order_arrives(kafka, number):
    orders, group, value = kafka.topic("orders"), f"shop {number}", b"order %d" % number
    assert produce_and_consume(kafka.bootstrap, orders, group, value) == value
    assert [record.value for record in kafka.records(orders)] == [value]
    kafka.wait_for_lag_zero(group)
"""

CLIENTS = {
    "the bundled client": """
from odradek import Consumer, Producer


async def run(bootstrap, topic, group, value):
    async with Producer(bootstrap) as producer:
        await producer.send_and_wait(topic, value)
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with Consumer(bootstrap, **settings) as consumer:
        await consumer.subscribe(topic)
        [record] = await consumer.poll(60_000)
        await consumer.commit()
    return record.value


def produce_and_consume(*arguments):
    return asyncio.run(run(*arguments))
""",
    "aiokafka": """
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def run(bootstrap, topic, group, value):
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, value)
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, **settings) as consumer:
        record = await consumer.getone()
        await consumer.commit()
    return record.value


def produce_and_consume(*arguments):
    return asyncio.run(run(*arguments))
""",
    "confluent-kafka": """
from confluent_kafka import Consumer, Producer


def produce_and_consume(bootstrap, topic, group, value):
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value)
    assert producer.flush(60) == 0
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap} | settings)
    consumer.subscribe([topic])
    message = consumer.poll(60)
    consumer.commit(message, asynchronous=False)
    consumer.close()
    return message.value()
""",
}

Sample = dict[str, float]


def run_suite(directory: Path, client: str, *arguments: str) -> Sample:
    """Run the suite with a client in a process of its own, and return its figures."""
    suite = directory / "test_orders.py"
    suite.write_text(SUITE.replace("TESTS", str(TESTS)).replace("CLIENT", CLIENTS[client]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "odradek.testing.plugin", "-p", "no:cacheprovider"]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(directory), *arguments, str(suite)],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stdout)
    _, second, *_, last = json.loads((directory / "times.json").read_text())
    return {"first": second, "others": last - second, "all": taken}


def measure_odradek(client: str) -> Sample:
    with TemporaryDirectory(prefix="testing-") as directory:
        return run_suite(Path(directory), client)


def measure_kafka(client: str) -> Sample:
    with TemporaryDirectory(prefix="testing-") as directory:
        began = time.perf_counter()
        server = apache.prepare(Path(directory) / "kafka", options=KAFKA_OPTIONS).start()
        start = time.perf_counter() - began
        try:
            sample = run_suite(Path(directory), client, f"--kafka={server.bootstrap}")
        finally:
            server.stop()
    return {"start": start} | sample | {"all": start + sample["all"]}


def measure(rounds: int, *, with_kafka: bool) -> None:
    samples: dict[str, list[Sample]] = {}
    brokers = {"Odradek": measure_odradek} | ({"Apache Kafka": measure_kafka} if with_kafka else {})
    runs = {f"{broker}, {client}": partial(run, client) for client in CLIENTS for broker, run in brokers.items()}
    for counted in (False, *(True,) * rounds):  # the first round only warms the page cache
        for name, run in runs.items():
            sample = run()
            figures = ", ".join(f"{figure} {value:.3g} s" for figure, value in sample.items())
            print(f"{name}: {figures}{'' if counted else ' (not counted)'}", file=sys.stderr, flush=True)
            if counted:
                samples.setdefault(name, []).append(sample)
    print(f"Odradek: {'compiled' if is_compiled() else 'plain Python'}. Medians of {rounds} rounds.\n")
    print("| | start | first test | 100 more | all |")
    print("|---|---|---|---|---|")
    for name, rows in samples.items():
        cells = [format_cell(rows, figure) for figure in ("start", "first", "others", "all")]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.testing")
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka, too, in turns with Odradek")
    arguments = parser.parse_args()
    measure(arguments.rounds, with_kafka=arguments.kafka)


if __name__ == "__main__":
    main()
