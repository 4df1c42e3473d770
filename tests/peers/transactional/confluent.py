"""confluent-kafka: librdkafka, which speaks the first version of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.peers.transactional import TIMEOUT, FencedError, Member, Read, TransactionError

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001


class Confluent:
    name = "confluent-kafka"

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> ConfluentProducer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    def member(self, bootstrap: str, group: str, topic: str) -> ConfluentMember:
        return ConfluentMember(bootstrap, group, topic)

    def committed(self, bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
        consumer = _consumer(bootstrap, "unused", {"enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[bytes] = []
        try:
            while True:
                message = consumer.poll(TIMEOUT)
                assert message is not None, "neither a record nor the end"
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()  # noqa: SLF001
                    return found
                found.append(message.value())
        finally:
            consumer.close()


class ConfluentProducer:
    """A failed record fails its transaction: librdkafka reports it by `flush` and by the commit."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._failed: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "retry.backoff.ms": 20,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        with _translated():
            self._producer.init_transactions(TIMEOUT)

    def begin(self) -> None:
        with _translated():
            self._producer.begin_transaction()

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        with _translated():
            for value in values:
                self._producer.produce(topic, value, partition=partition, on_delivery=self._delivered)
            assert self._producer.flush(TIMEOUT) == 0
            if self._failed is not None:
                raise KafkaException(self._failed)

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self._failed = self._failed or error

    def send_offsets(self, member: Member, offsets: Mapping[tuple[str, int], int]) -> None:
        assert isinstance(member, ConfluentMember)
        rows = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        with _translated():
            self._producer.send_offsets_to_transaction(rows, member.consumer.consumer_group_metadata(), TIMEOUT)

    def commit(self) -> None:
        with _translated():
            self._producer.commit_transaction(TIMEOUT)

    def abort(self) -> None:
        with _translated():
            self._producer.abort_transaction(TIMEOUT)
        self._failed = None

    def close(self) -> None:
        """Nothing: librdkafka's producer ends with its object."""


class ConfluentMember:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.consumer = _consumer(bootstrap, group, {"auto.offset.reset": "earliest"})
        self.consumer.subscribe([topic])

    def read(self, count: int) -> list[Read]:
        found = []
        for _ in range(count):
            message = self.consumer.poll(TIMEOUT)
            assert message is not None, "no record"
            assert message.error() is None, message.error()
            found.append(Read(message.offset(), message.value()))
        return found

    def close(self) -> None:
        self.consumer.close()


def _consumer(bootstrap: str, group: str, more: Mapping[str, object]) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **more,
        }
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() in _FENCED:
            raise FencedError from error
        raise TransactionError from error
    except SystemError as error:  # a fatal error during a callback
        if not isinstance(error.__cause__, KafkaException):
            raise
        raise TransactionError from error
