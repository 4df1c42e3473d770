"""kafka-python: threads, pure Python, the newest versions that it supports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.peers.clients import BEGINNING, Incoming, Outgoing, Start, nothing

TIMEOUT = 30.0


class KafkaPython:
    name = "kafka-python"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Outgoing],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=5,
        )
        with closing(producer):
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=partition,
                    timestamp_ms=record.timestamp,
                    headers=list(record.headers),
                )
                for record in records
            ]
            offsets = [future.get(TIMEOUT).offset for future in futures]
        return [] if acks == "0" else offsets

    def consume(
        self,
        bootstrap: str,
        topic: str,
        *,
        count: int,
        partition: int = 0,
        start: Start = BEGINNING,
        once_positioned: Callable[[], None] = nothing,
    ) -> list[Incoming]:
        with closing(_consumer(bootstrap)) as consumer:
            assigned = TopicPartition(topic, partition)
            consumer.assign([assigned])
            _seek(consumer, assigned, start)
            consumer.position(assigned)  # resolves the start: seeks are lazy
            once_positioned()
            records = [record for _, record in zip(range(count), consumer, strict=False)]
        assert len(records) == count, f"{len(records)} of {count} records arrived"
        return [Incoming(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in records]

    def offsets(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        wanted = TopicPartition(topic, partition)
        with closing(_consumer(bootstrap)) as consumer:
            return consumer.beginning_offsets([wanted])[wanted], consumer.end_offsets([wanted])[wanted]

    def offset_for_time(self, bootstrap: str, topic: str, timestamp: int, partition: int = 0) -> int | None:
        wanted = TopicPartition(topic, partition)
        with closing(_consumer(bootstrap)) as consumer:
            found = consumer.offsets_for_times({wanted: timestamp})[wanted]
        return None if found is None else found.offset


def _consumer(bootstrap: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, consumer_timeout_ms=int(TIMEOUT * 1000)
    )


def _seek(consumer: KafkaConsumer, partition: TopicPartition, start: Start) -> None:
    if start.kind == "beginning":
        consumer.seek_to_beginning(partition)
    elif start.kind == "end":
        consumer.seek_to_end(partition)
    elif start.kind == "offset":
        consumer.seek(partition, start.value)
    else:
        consumer.seek(partition, consumer.offsets_for_times({partition: start.value})[partition].offset)
