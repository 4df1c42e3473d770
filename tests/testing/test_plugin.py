from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.config import ConfigError
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.testing.plugin import kafka_broker, kafka_session_broker
from odradek.broker.testing.threaded import ThreadedBroker

__all__ = ["kafka_broker", "kafka_session_broker"]


@pytest.fixture(scope="session")
def kafka_properties() -> Mapping[str, str]:
    return {"num.partitions": "2"}


README = Path(__file__).parents[2] / "README.md"


def values_of(broker: ThreadedBroker, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    while len(values) < count:
        values += [message.value() for message in consumer.consume(count, 1) if not message.error()]
    consumer.close()
    return values


def test_each_test_has_its_own_broker(kafka_broker: ThreadedBroker) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    producer.produce("t", b"a", partition=0)
    assert producer.flush(10) == 0

    assert values_of(kafka_broker, "t", 1) == [b"a"]
    assert set(producer.list_topics(timeout=10).topics) - {"__consumer_offsets"} == {"t"}
    assert len(producer.list_topics(timeout=10).topics["t"].partitions) == 2


def test_the_next_test_has_another_broker(kafka_broker: ThreadedBroker, kafka_session_broker: ThreadedBroker) -> None:
    for broker in (kafka_broker, kafka_session_broker):
        assert list(Producer({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics) == []
    assert kafka_broker.port != kafka_session_broker.port


@pytest.mark.process
def test_the_fixture_of_the_readme_works_from_any_directory(tmp_path: Path) -> None:
    section = README.read_text().partition("\n## A broker in your tests\n")[2].partition("\n## ")[0]
    conftest, test = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_orders.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_thread_of_a_broker_ends_with_it() -> None:
    before = set(threading.enumerate())

    with ThreadedBroker():
        assert set(threading.enumerate()) > before

    assert set(threading.enumerate()) == before


def test_start_raises_the_error_of_the_broker(tmp_path: object) -> None:
    with ThreadedBroker({"log.dirs": str(tmp_path)}), pytest.raises(LogDirRefusedError):
        ThreadedBroker({"log.dirs": str(tmp_path)}).start()

    with pytest.raises(ConfigError):
        ThreadedBroker({"no.such": "property"}).start()
