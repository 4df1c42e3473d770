"""A transactional id, which Odradek does not serve yet: clients fail at once and not after a timeout."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TransactionalIdAuthorizationFailed
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError


@pytest.fixture(autouse=True)
def _only_odradek(kind: str) -> None:
    if kind == "apache":
        pytest.skip("Apache Kafka has transactions")


def test_librdkafka_fails_at_once_with_a_transactional_id(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})

    with pytest.raises(KafkaException) as caught:
        producer.init_transactions(60)  # otherwise the error would be _TIMED_OUT

    error = caught.value.args[0]
    assert (error.code(), error.fatal()) == (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True)


async def test_aiokafka_fails_at_once_with_a_transactional_id(bootstrap: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")

    with pytest.raises(TransactionalIdAuthorizationFailed):
        await producer.start()
    await producer.stop()


def test_kafka_python_fails_at_once_with_a_transactional_id(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")

    with pytest.raises(KafkaPythonError, match="Could not find a coordinator"):
        producer.init_transactions()
    producer.close(timeout=0)
