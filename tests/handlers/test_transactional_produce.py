from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.replication.appends.log_appender import LogAppender
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.schema import Message
from tests.handlers.busy_threads import busy_disk_threads
from tests.handlers.requests import batch, create, fetch, produce_request, values_in
from tests.handlers.transactional_batches import ProducingProducer
from tests.handlers.write_markers import write_marker
from tests.wire import Wire


async def committed_values(wire: Wire, topic: str, index: int = 0) -> list[bytes | None]:
    """The values below the last stable offset, those of aborted transactions included; None for a marker.

    A marker begins a new segment here, because the batches of the tests are years older.
    """
    values: list[bytes | None] = []
    while True:
        row = await fetch(wire, topic, len(values), index, isolation_level=1)
        if len(values) == row.last_stable_offset:
            return values
        for position, header in batch_headers(row.records or b""):
            records = iter_records(row.records, position, header)
            values += [None if header.is_control else record.value for record in records]


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("version", [12, 13])
async def test_from_version_12_on_produce_adds_the_partition(wire: Wire, version: int, size: int) -> None:
    topic_id = await create(wire, "t", 2)
    producer = ProducingProducer(wire)
    await producer.start()
    for number in range(3):
        for index in range(2):
            records = producer.batch(b"v" * size, sequence=0)
            topic = TopicProduceData("t" if version < 13 else "", topic_id, [PartitionProduceData(index, records)])
            request = ProduceRequest(producer.transactional_id, -1, 30_000, [topic])
            [answered] = (await wire.ask(request, version)).responses
            [row] = answered.partition_responses
            assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 2 * number)
        assert await committed_values(wire, "t") == [b"v" * size, None] * number, "the transaction is open"
        await producer.finish(commit=True)

    assert producer.epoch == 3
    assert await committed_values(wire, "t", 1) == [b"v" * size, None] * 3


@pytest.mark.parametrize("version", [3, 9, 10, 11])
async def test_before_version_12_the_partition_must_have_been_added(wire: Wire, version: int) -> None:
    await create(wire, "t", 2)
    producer = ProducingProducer(wire, is_new=False)
    await producer.start()
    await producer.add_partition("t", 0)

    row = await producer.produce("t", b"a", version=version)
    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 0)
    row = await producer.produce("t", b"a", index=1, version=version)
    abortable = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
    assert (row.error_code, row.base_offset) == (abortable, -1)

    await producer.finish(commit=True)
    row = await producer.produce("t", b"b", sequence=1, version=version)
    assert row.error_code == abortable, "the transaction has ended"


async def test_a_delayed_batch_of_version_1_opens_no_transaction(wire: Wire) -> None:
    await create(wire, "t")
    producer = ProducingProducer(wire, is_new=False)
    await producer.start()
    await producer.add_partition("t", 0)
    await producer.finish(commit=False)

    assert (await producer.produce("t", b"late", version=9)).error_code == ErrorCode.INVALID_TXN_STATE
    await producer.start()
    producer.epoch -= 1
    row = await producer.produce("t", b"late", version=9)

    assert row.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await committed_values(wire, "t") == [None]


async def test_a_delayed_batch_of_version_2_does_not_join_the_next_transaction(wire: Wire) -> None:
    await create(wire, "t", 2)
    producer = ProducingProducer(wire)
    await producer.start()
    late = [producer.request(("t", index, producer.batch(b"late", sequence=1))) for index in range(2)]
    await producer.produce("t", b"a")
    await producer.finish(commit=True)
    await producer.produce("t", b"b")

    for request in late:
        [[row]] = [topic.partition_responses for topic in (await wire.ask(request, 12)).responses]
        assert row.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    await producer.finish(commit=True)
    assert await committed_values(wire, "t") == [b"a", None, b"b", None]
    assert await committed_values(wire, "t", 1) == []


async def test_an_unknown_producer_of_version_2_begins_with_sequence_0(wire: Wire) -> None:
    await create(wire, "t")
    producer = ProducingProducer(wire)
    await producer.start()

    row = await producer.produce("t", b"a", sequence=5)
    assert row.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await producer.produce("t", b"a")).error_code == ErrorCode.NONE


async def test_a_batch_that_is_sent_again_gets_its_first_offset(wire: Wire) -> None:
    await create(wire, "t")
    producer = ProducingProducer(wire)
    await producer.start()
    assert (await producer.produce("t", b"a")).base_offset == 0
    assert (await producer.produce("t", b"b", sequence=1)).base_offset == 1

    again = await producer.produce("t", b"a")

    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("version", [9, 12])
async def test_transactional_batches_without_a_transactional_id_fail_the_request(wire: Wire, version: int) -> None:
    await create(wire, "t", 2)
    records = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    rows = [PartitionProduceData(0, batch(b"plain")), PartitionProduceData(1, records)]
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData("t", partition_data=rows)])

    [answered] = (await wire.ask(request, version)).responses

    codes = [row.error_code for row in answered.partition_responses]
    assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert values_in(await fetch(wire, "t")) == []


@pytest.mark.parametrize("version", [9, 12])
async def test_batches_of_two_producers_fail_the_request(wire: Wire, version: int) -> None:
    await create(wire, "t", 2)
    producer = ProducingProducer(wire)
    await producer.start()
    other = producer.batch(b"b", producer_id=producer.producer_id + 1)
    request = producer.request(("t", 0, producer.batch(b"a")), ("t", 1, other))

    answered = (await wire.ask(request, version)).responses

    codes = [row.error_code for topic in answered for row in topic.partition_responses]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


@pytest.mark.parametrize("version", [9, 11, 12])
async def test_a_producer_that_the_coordinator_does_not_know_is_refused(wire: Wire, version: int) -> None:
    await create(wire, "t")
    producer = ProducingProducer(wire)
    await producer.start()
    row = await producer.produce("t", b"a", version=version, producer_id=producer.producer_id + 1)
    assert row.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    row = await producer.produce("t", b"a", version=version, producer_epoch=producer.epoch + 1)
    assert row.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", [9, 12])
@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("unknown", ErrorCode.INVALID_PRODUCER_ID_MAPPING), ("", ErrorCode.INVALID_REQUEST)],
)
async def test_an_older_epoch_is_refused_where_the_newer_one_is_known(
    wire: Wire, version: int, transactional_id: str, code: ErrorCode
) -> None:
    await create(wire, "t", 2)
    producer = ProducingProducer(wire)
    await producer.start()
    late = producer.batch(b"late")
    await producer.produce("t", b"a")
    await producer.finish(commit=True)
    request = producer.request(("t", 0, late), ("t", 1, late))
    request.transactional_id = transactional_id

    answered = (await wire.ask(request, version)).responses

    codes = [row.error_code for topic in answered for row in topic.partition_responses]
    assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH, code]


@pytest.mark.parametrize("version", [9, 12])
async def test_the_empty_transactional_id_is_refused(wire: Wire, version: int) -> None:
    await create(wire, "t")
    producer = ProducingProducer(wire)
    await producer.start()
    records = producer.batch(b"a")

    [answered] = (await wire.ask(produce_request("t", records, transactional_id=""), version)).responses

    [row] = answered.partition_responses
    assert (row.error_code, row.log_start_offset) == (ErrorCode.INVALID_REQUEST, -1)


@pytest.mark.parametrize("version", [9, 12])
async def test_without_a_coordinator_producers_retry(wire: Wire, version: int) -> None:
    await create(wire, "t")
    records = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = produce_request("t", records, transactional_id="nobody's")

    [[row]] = [topic.partition_responses for topic in (await wire.ask(request, version)).responses]

    known = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_PRODUCER_ID_MAPPING}  # there may be a coordinator
    assert row.error_code in known


async def test_rows_that_need_no_verification_are_appended(wire: Wire) -> None:
    await create(wire, "t", 2)
    producer = ProducingProducer(wire)
    await producer.start()
    plain = batch(b"plain", producer_id=producer.producer_id + 1, producer_epoch=0, base_sequence=0)
    request = producer.request(("t", 0, producer.batch(b"a")), ("t", 1, plain), ("missing", 0, producer.batch(b"a")))

    answered = (await wire.ask(request, 12)).responses

    codes = {topic.name: [row.error_code for row in topic.partition_responses] for topic in answered}
    assert codes["missing"] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await committed_values(wire, "t", 1) == [b"plain"]
    assert await committed_values(wire, "t") == []


async def test_with_verification_switched_off_older_producers_are_not_verified(wire: Wire) -> None:
    await create(wire, "t")
    producer = ProducingProducer(wire, is_new=False)
    await producer.start()
    await switch_verification(wire, "false")
    try:
        assert (await producer.produce("t", b"a", version=11)).error_code == ErrorCode.NONE
        await write_marker(wire, "t", producer.producer_id, producer.epoch)
    finally:
        await switch_verification(wire, "true")

    row = await producer.produce("t", b"b", sequence=1, version=11)
    assert row.error_code == ErrorCode.TRANSACTION_ABORTABLE


async def switch_verification(wire: Wire, value: str) -> None:
    name = "transaction.partition.verification.enable"
    resource = AlterConfigsResource(4, "", [AlterableConfig(name, 0, value)])
    [answer] = (await wire.ask(IncrementalAlterConfigsRequest([resource]), 1)).responses
    assert answer.error_code == ErrorCode.NONE, answer


@pytest.mark.parametrize("is_new", [True, False])
async def test_transactions_may_follow_each_other_without_waiting_for_answers(
    only_here: None, wire: Wire, is_new: bool
) -> None:
    """All of an end happens in one turn, so the next transaction never meets CONCURRENT_TRANSACTIONS."""
    await create(wire, "t", 3)
    producer = ProducingProducer(wire, is_new=is_new)
    await producer.start()
    requests: list[tuple[Message, int]] = []
    for number in range(10):
        sequence = 0 if is_new else number
        if not is_new:
            rows = [AddPartitionsToTxnTopic("t", [0, 1, 2])]
            ids = (producer.transactional_id, producer.producer_id, producer.epoch)
            requests.append((AddPartitionsToTxnRequest([], *ids, rows), 3))
        batches = [("t", index, producer.batch(b"v", sequence=sequence)) for index in range(3)]
        requests.append((producer.request(*batches), 12 if is_new else 9))
        end = EndTxnRequest(producer.transactional_id, producer.producer_id, producer.epoch, number % 2 == 0)
        requests.append((end, 5 if is_new else 3))
        producer.epoch += is_new

    for request, version in requests:
        await wire.send(request, version)
    codes = set()
    for request, version in requests:
        codes |= _codes(await wire.receive(request, version))

    assert codes == {ErrorCode.NONE}
    assert await committed_values(wire, "t", 2) == [b"v", None] * 10


def _codes(response: Any) -> set[int]:
    """Return the codes of an answer to AddPartitionsToTxn, Produce or EndTxn."""
    if isinstance(response, AddPartitionsToTxnResponse):
        topics = response.results_by_topic_v3_and_below
        return {row.partition_error_code for topic in topics for row in topic.results_by_partition}
    if isinstance(response, ProduceResponse):
        return {row.error_code for topic in response.responses for row in topic.partition_responses}
    return {response.error_code}


@pytest.mark.parametrize("is_new", [True, False])
async def test_while_an_end_waits_for_the_disk_the_next_transaction_waits(
    only_here: None, broker: Broker, wire: Wire, is_new: bool
) -> None:
    await create(wire, "t", 1)
    producer = ProducingProducer(wire, is_new=is_new)
    await producer.start()
    if not is_new:
        await producer.add_partition("t", 0)
    assert (await producer.produce("t", b"a")).error_code == ErrorCode.NONE
    appenders = _sync_each_record_of(broker, "__transaction_state")
    epoch = producer.epoch

    async with busy_disk_threads(broker), Wire("127.0.0.1", broker.port) as other:
        ending = asyncio.ensure_future(producer.end(commit=True, version=5 if is_new else 3))
        while not any(each.waits_for_flush for each in appenders):  # noqa: ASYNC110 - a turn of the loop, not a pause
            await asyncio.sleep(0)
        assert (await producer_on(other, producer, epoch).describe()).transaction_state == "Ongoing"
        next_one = producer_on(other, producer, epoch + is_new)
        added = await next_one.add_as_broker({"t": [0]}) if is_new else await next_one.add({"t": [0]})
        assert added == {("t", 0): ErrorCode.CONCURRENT_TRANSACTIONS}
        assert not ending.done(), "the decision is not on the disk"
        assert await committed_values(other, "t") == [], "no marker is written before it"

    assert await ending is ErrorCode.NONE
    while await committed_values(wire, "t") != [b"a", None]:
        pass
    while (await producer.describe()).transaction_state != "CompleteCommit":
        pass
    assert producer.epoch == epoch + is_new


def producer_on(wire: Wire, producer: ProducingProducer, epoch: int) -> ProducingProducer:
    """Return the producer on another connection, in this epoch."""
    copied = copy.copy(producer)
    copied.wire, copied.epoch = wire, epoch
    return copied


def _sync_each_record_of(broker: Broker, topic: str) -> list[LogAppender]:
    """Set flush.messages of the topic's partitions to 1; return their appenders."""
    indexes = range(len(broker.services.metadata.image.topics[topic].partitions))
    appenders = [broker.services.partitions.get(topic, index).appender for index in indexes]
    for each in appenders:
        each.flush_messages = 1
    return appenders
