"""kafka-python: threads, the first version of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.peers.transactional import TIMEOUT, FencedError, Member, Read, TransactionError


class KafkaPython:
    name = "kafka-python"

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> KafkaPythonProducer:
        return KafkaPythonProducer(bootstrap, transactional_id, timeout_ms)

    def member(self, bootstrap: str, group: str, topic: str) -> KafkaPythonMember:
        return KafkaPythonMember(bootstrap, group, topic)

    def committed(self, bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
        with closing(_consumer(bootstrap, None)) as consumer:
            assigned = TopicPartition(topic, partition)
            consumer.assign([assigned])
            consumer.seek_to_beginning(assigned)
            end = consumer.end_offsets([assigned])[assigned]
            found: list[bytes] = []
            while consumer.position(assigned) < end:
                found += [record.value for rows in consumer.poll(100).values() for record in rows]
            return found


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            retry_backoff_ms=20,
        )
        with _translated():
            self._producer.init_transactions()

    def begin(self) -> None:
        with _translated():
            self._producer.begin_transaction()

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        with _translated():
            for future in [self._producer.send(topic, value, partition=partition) for value in values]:
                future.get(TIMEOUT)

    def send_offsets(self, member: Member, offsets: Mapping[tuple[str, int], int]) -> None:
        assert isinstance(member, KafkaPythonMember)
        rows = {TopicPartition(*partition): OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()}
        with _translated():
            self._producer.send_offsets_to_transaction(rows, member.consumer.group_metadata())

    def commit(self) -> None:
        with _translated():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _translated():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)


class KafkaPythonMember:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.consumer = _consumer(bootstrap, group)
        self.consumer.subscribe([topic])

    def read(self, count: int) -> list[Read]:
        records = [record for _, record in zip(range(count), self.consumer, strict=False)]
        assert len(records) == count
        return [Read(record.offset, record.value) for record in records]

    def close(self) -> None:
        self.consumer.close()


def _consumer(bootstrap: str, group: str | None) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=int(TIMEOUT * 1000),
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, InvalidProducerEpochError) as error:
        raise FencedError from error
    except (KafkaError, RuntimeError) as error:
        raise TransactionError from error
