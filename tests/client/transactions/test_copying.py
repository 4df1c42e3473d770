"""Copies with offsets: the program of docs/client.md, and a consumer that has lost its membership."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.client import Admin, Consumer, NewTopic, Producer, TransactionAbortedError
from tests.client.conftest import MakeTopic
from tests.client.transactions.versions import set_transaction_version

PAGE = Path(__file__).resolve().parents[3] / "docs" / "client.md"
RECORDS = 300


def program(bootstrap: str, source: str, target: str) -> dict[str, Any]:
    [found] = [one for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "send_offsets(" in one]
    names = {"localhost:9092": bootstrap, '"orders"': f'"{source}"', '"audited"': f'"{target}"', "copiers": source}
    for name, other in names.items():
        assert name in found
        found = found.replace(name, other)
    namespace: dict[str, Any] = {"__name__": "copying"}
    exec(found, namespace)
    return namespace


async def copied(bootstrap: str, target: str, seen: asyncio.Event, values: list[bytes | None]) -> None:
    async with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign(await consumer.partitions_for(target))
        async for record in consumer:
            values.append(record.value)
            seen.set()


@pytest.mark.servers("apache")
@pytest.mark.parametrize("version", [1, 2])
async def test_copiers_that_come_and_go_copy_each_record_once(
    bootstrap: str, make_topic: MakeTopic, version: int
) -> None:
    await set_transaction_version(bootstrap, version)
    source = await make_topic(2)
    target = f"{source}-copy"
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(target, 2)])).value(target)
    copy = program(bootstrap, source, target)["copy"]
    values: list[bytes | None] = []
    seen = asyncio.Event()
    reader = asyncio.create_task(copied(bootstrap, target, seen, values))
    copiers = [asyncio.create_task(copy("one"))]
    async with Producer(bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send(source, b"%d" % number, key=b"%d" % number)
            if number in (RECORDS // 3, 2 * RECORDS // 3):
                await producer.flush()
                seen.clear()
                await seen.wait()
                copiers.append(asyncio.create_task(copy(f"of {number}")))
    copiers[0].cancel()
    while len(values) < RECORDS:
        seen.clear()
        await seen.wait()
    for task in (*copiers, reader):
        task.cancel()
    outcomes = await asyncio.gather(*copiers, reader, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * len(outcomes)
    assert sorted(values, key=lambda value: int(value or b"")) == [b"%d" % number for number in range(RECORDS)]


@pytest.mark.servers("odradek", "apache")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_offsets_of_a_consumer_that_has_left_its_group_are_refused(
    bootstrap: str, make_topic: MakeTopic, protocol: Any
) -> None:
    topic = await make_topic(1)
    async with (
        Producer(bootstrap, transactional_id=topic) as producer,
        Consumer(
            bootstrap,
            group_id=topic,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=50,
            max_poll_interval_ms=500,
        ) as consumer,
        Admin(bootstrap) as admin,
    ):
        async with producer.transaction():
            await producer.send(topic, b"record")
        await consumer.subscribe(topic)
        await consumer.poll()
        while (await admin.describe_groups([topic])).value(topic).members:
            continue  # until the time between two polls is over

        with pytest.raises(TransactionAbortedError):
            async with producer.transaction() as transaction:
                await transaction.send_offsets({(topic, 0): 1}, consumer)
        assert (await consumer.committed([(topic, 0)]))[(topic, 0)] is None
