"""confluent-kafka: librdkafka, the client under most languages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from tests.peers.clients import BEGINNING, Incoming, Outgoing, Start, nothing

TIMEOUT = 30.0


class Confluent:
    name = "confluent-kafka"

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
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            if acks != "0":
                offsets.append(message.offset())

        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
            }
        )
        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=partition,
                headers=list(record.headers),
                on_delivery=delivered,
                **({} if record.timestamp is None else {"timestamp": record.timestamp}),
            )
        assert producer.flush(TIMEOUT) == 0
        return offsets

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
        consumer = _consumer(bootstrap)
        try:
            consumer.assign([TopicPartition(topic, partition, _resolve(consumer, topic, partition, start))])
            once_positioned()
            messages: list[Message] = []
            while len(messages) < count:
                arrived = consumer.consume(count - len(messages), timeout=TIMEOUT)
                assert arrived, f"{len(messages)} of {count} records arrived"
                for message in arrived:
                    assert message.error() is None, message.error()
                messages += arrived
        finally:
            consumer.close()
        return [Incoming(m.offset(), m.timestamp()[1], m.key(), m.value(), tuple(m.headers() or ())) for m in messages]

    def offsets(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = _consumer(bootstrap)
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)
        finally:
            consumer.close()
        return low, high

    def offset_for_time(self, bootstrap: str, topic: str, timestamp: int, partition: int = 0) -> int | None:
        consumer = _consumer(bootstrap)
        try:
            [found] = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], timeout=TIMEOUT)
        finally:
            consumer.close()
        return found.offset if found.offset >= 0 else None


def _consumer(bootstrap: str) -> Consumer:
    # librdkafka requires a group.id even for consumers that only assign.
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})


def _resolve(consumer: Consumer, topic: str, partition: int, start: Start) -> int:
    if start.kind == "offset":
        return start.value
    if start.kind == "beginning":
        return OFFSET_BEGINNING
    if start.kind == "end":
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)[1]
    [found] = consumer.offsets_for_times([TopicPartition(topic, partition, start.value)], timeout=TIMEOUT)
    return found.offset
