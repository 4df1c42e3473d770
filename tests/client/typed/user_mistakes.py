"""Mistakes that the type checker finds: each marked line, with the code of its error."""

from __future__ import annotations

from odradek.client import Admin, Consumer, NewTopic, Producer


async def mistakes() -> None:
    Producer("localhost:9092", acks=2)  # error: arg-type
    Producer("localhost:9092", compression_type="brotli")  # error: arg-type
    Producer("localhost:9092", lingering_ms=5)  # error: call-arg
    Producer("localhost:9092", client_id=5)  # error: arg-type
    async with Producer("localhost:9092") as producer:
        await producer.send("t", "text")  # error: arg-type
        await producer.send("t", headers=[("a", "text")])  # error: list-item
    async with Producer("localhost:9092", key_serializer=str.encode) as producer_of_keys:
        await producer_of_keys.send("t", b"value", key=b"key")  # error: arg-type
    async with Consumer("localhost:9092") as consumer:
        consumer.seek("t", 0)  # error: arg-type
        repr((await consumer.poll())[0].payload)  # error: attr-defined
    async with Admin("localhost:9092") as admin:
        await admin.create_topics(["t"])  # error: list-item
        repr((await admin.describe_topics(["t"]))["t"].partitions)  # error: union-attr
        NewTopic(3)  # error: arg-type
