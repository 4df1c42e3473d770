"""`Admin` and transactions of real brokers: list and describe them, fence producers, find and abort one that hangs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.client import (
    Admin,
    BrokerError,
    ClientError,
    Producer,
    ProducerFencedError,
    ProducerIdAndEpoch,
    TopicPartition,
    UnknownTopicError,
)
from odradek.protocol.errors import ErrorCode
from tests.client.conftest import MakeTopic
from tests.client.transactions.hanging import open_unknown_to_its_coordinator

pytestmark = pytest.mark.servers("odradek", "apache")


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[Admin]:
    async with Admin(bootstrap) as admin:
        yield admin


async def test_an_open_transaction_is_listed_described_and_fenced(
    admin: Admin, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(2)
    async with Producer(bootstrap, transactional_id=topic, transaction_timeout_ms=54321, linger_ms=0) as producer:
        with pytest.raises(ProducerFencedError):  # noqa: PT012 - the block is what is tested
            async with producer.transaction():
                await producer.send_and_wait(topic, b"open", partition=1)
                listed = (await admin.list_transactions(states=["Ongoing"]))[topic]
                assert (listed.state, listed.coordinator) == ("Ongoing", 1)
                described = (await admin.describe_transactions([topic])).value(topic)
                [producing] = (await admin.describe_producers([(topic, 1)])).value(TopicPartition(topic, 1))
                fenced = (await admin.fence_producers([topic])).value(topic)
    assert described.state == "Ongoing"
    assert (described.coordinator, described.timeout_ms) == (1, 54321)
    assert described.partitions == (TopicPartition(topic, 1),)
    assert described.start_time is not None
    assert abs(described.start_time - producing.last_timestamp) < 60_000
    assert (producing.producer_id, producing.producer_epoch) == (described.producer_id, described.producer_epoch)
    assert (producing.last_sequence, producing.transaction_start_offset) == (0, 0)
    assert producing.coordinator_epoch is None
    assert fenced == ProducerIdAndEpoch(described.producer_id, described.producer_epoch + 2)

    ended = (await admin.describe_transactions([topic])).value(topic)
    assert (ended.state, ended.producer_epoch, ended.start_time) == ("Empty", fenced.producer_epoch, None)
    assert ended.partitions == ()
    [producing] = (await admin.describe_producers([(topic, 1)], broker=1)).value(TopicPartition(topic, 1))
    assert producing.transaction_start_offset is None
    assert producing.coordinator_epoch is not None


async def test_lists_are_filtered_by_id_state_pattern_and_duration(
    admin: Admin, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    other = f"{topic}-other"
    async with (
        Producer(bootstrap, transactional_id=topic) as producer,
        Producer(bootstrap, transactional_id=other),
        producer.transaction(),
    ):
        await producer.send_and_wait(topic, b"open")
        everything = await admin.list_transactions()
        assert list(everything) == sorted(everything)
        assert {everything[topic].state, everything[other].state} == {"Ongoing", "Empty"}
        chosen = await admin.list_transactions(producer_ids=[everything[other].producer_id])
        assert list(chosen) == [other]
        assert list(await admin.list_transactions(pattern=f"{topic}-o.*r")) == [other]
        assert list(await admin.list_transactions(pattern=topic, states=["Ongoing", "Empty"])) == [topic]
        assert list(await admin.list_transactions(pattern=f"{topic}.*", longer_than_ms=3_600_000)) == [other]
        assert await admin.list_transactions(pattern=topic, states=["Empty"]) == {}
        with pytest.raises(BrokerError, match="INVALID_REGULAR_EXPRESSION"):
            await admin.list_transactions(pattern="(")


async def test_a_hanging_transaction_is_found_and_aborted(admin: Admin, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    where = TopicPartition(topic, 0)
    producer_id = await open_unknown_to_its_coordinator(bootstrap, topic)
    async with Producer(bootstrap, transactional_id=f"{topic}-open", linger_ms=0) as producer, producer.transaction():
        await producer.send_and_wait(topic, b"known", partition=0)
        found = await admin.find_hanging_transactions([(topic, 0), (topic, 1), (topic, 9)])
        everywhere = await admin.find_hanging_transactions(broker=1, older_than_ms=-1)
        too_young = await admin.find_hanging_transactions([where], older_than_ms=10**13)
        [hanging] = found.value(where)
        await admin.abort_transaction(where, hanging.producer)
        after = await admin.find_hanging_transactions([where], older_than_ms=-1)
    assert (hanging.partition, hanging.transactional_id) == (where, topic)
    assert (hanging.producer.producer_id, hanging.producer.transaction_start_offset) == (producer_id, 0)
    assert found.value(TopicPartition(topic, 1)) == ()
    assert isinstance(found[TopicPartition(topic, 9)], UnknownTopicError)
    assert everywhere.value(where) == (hanging,)
    assert (too_young.value(where), after.value(where)) == ((), ())
    ended = (await admin.describe_producers([where])).value(where)
    assert [one.transaction_start_offset for one in ended if one.producer_id == producer_id] == [None]


async def test_errors_of_items(admin: Admin, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    where, missing = TopicPartition(topic, 0), TopicPartition(topic, 7)
    unknown = (await admin.describe_transactions(["never-was"]))["never-was"]
    assert isinstance(unknown, BrokerError)
    assert unknown.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert str(unknown).startswith("describe the transactions of never-was at ")
    described = await admin.describe_producers([where, missing])
    assert described.value(where) == ()
    assert isinstance(described[missing], UnknownTopicError)
    elsewhere = (await admin.describe_producers([where], broker=77))[where]
    assert isinstance(elsewhere, ClientError)
    assert "the cluster has no broker 77 (it has 1)" in str(elsewhere)
    refused = (await admin.fence_producers([""], timeout_ms=5000))[""]
    assert isinstance(refused, BrokerError)

    async with Producer(bootstrap, transactional_id=topic):
        pass  # its successor has epoch 1
    async with Producer(bootstrap, transactional_id=topic, linger_ms=0) as producer, producer.transaction():
        await producer.send_and_wait(topic, b"open")
        [producing] = (await admin.describe_producers([where])).value(where)
        older = type(producing)(producing.producer_id, producing.producer_epoch - 1)
        with pytest.raises(BrokerError, match=f"abort the transaction of producer {producing.producer_id} on") as found:
            await admin.abort_transaction(where, older)
        assert found.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert found.value.cure.endswith("describe its producers again")
