"""The consumer over a scripted network: which records the user gets, and where the positions are."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from client import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigurationError,
    Consumer,
    ConsumerRecord,
    CorruptRecordsError,
    NoOffsetError,
    OffsetOutOfRangeError,
    TimeLimitError,
    UnknownTopicError,
)
from protocol.batch_header import TimestampType
from protocol.compression import Codec
from protocol.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker
from protocol.errors import ErrorCode
from protocol.messages.fetch import AbortedTransaction, FetchRequest, LeaderIdAndEpoch
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.record_iterator import Record
from tests.client.scripted_broker import Broker
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, batch, drop_unread, now, numbers, serve_and_drop
from tests.client.virtual_time import simulated

T0 = ("t", 0)


def values(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def fill(log: Log, count: int, per_batch: int = 10, codec: Codec = Codec.NONE) -> None:
    """Append the numbers from the end offset on, timestamps equal to offsets."""
    for start in range(log.end_offset, log.end_offset + count, per_batch):
        log.add(
            batch([b"%d" % offset for offset in range(start, start + per_batch)], start, timestamp=start, codec=codec)
        )


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Exactly this many records, by poll."""
    records: list[ConsumerRecord] = []
    while len(records) < count:
        records += await consumer.poll(max_records=count - len(records))
    return records


def one_log(count: int = 0, **kwargs: Any) -> tuple[ScriptedNetwork, Log]:
    network = ScriptedNetwork(**kwargs)
    [log] = network.create("t")
    fill(log, count)
    return network, log


# Reading.


@simulated
async def test_poll_returns_what_is_there_in_order() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        records = await read(consumer, 100)
        assert values(records) == numbers(100)
        assert records[7] == ConsumerRecord("t", 0, 7, 7, None, b"7", (), TimestampType.CREATE_TIME, 0)
        assert await consumer.position(T0) == 100


@simulated
async def test_iteration_gives_record_by_record_and_the_position_goes_with_it() -> None:
    network, log = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        seen = 0
        async for record in consumer:
            assert record.offset == seen
            seen += 1
            assert await consumer.position(T0) == seen
            if seen == 50:
                break
        assert values(await consumer.poll(max_records=5)) == numbers(55)[50:]
        async for record in consumer:
            if record.offset == 99:
                fill(log, 10)
            if record.offset == 109:
                break


@pytest.mark.parametrize("codec", list(Codec))
@simulated
async def test_every_codec_is_read(codec: Codec) -> None:
    network, log = one_log()
    fill(log, 1000, per_batch=500, codec=codec)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 1000)) == numbers(1000)


@simulated
async def test_all_partitions_of_all_brokers_are_read_each_in_order() -> None:
    network = ScriptedNetwork(brokers=3)
    for log in network.create("t", 7):
        fill(log, 50)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions_for("t"))
        records = await read(consumer, 350)
    for partition in range(7):
        assert values([record for record in records if record.partition == partition]) == numbers(50)


@simulated
async def test_partitions_take_turns() -> None:
    network = ScriptedNetwork()
    for log in network.create("t", 2):
        fill(log, 1000)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", max_partition_fetch_bytes=500
    ) as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        first = await read(consumer, 400)
    counts = [sum(record.partition == partition for record in first) for partition in (0, 1)]
    assert min(counts) > 100


@simulated
async def test_a_record_that_comes_later_arrives_at_once() -> None:
    network, log = one_log(10)
    async with Consumer(network.bootstrap, network=network, fetch_max_wait_ms=10000) as consumer:
        consumer.assign([T0])
        polling = asyncio.create_task(consumer.poll())
        await asyncio.sleep(3)
        fill(log, 10)
        assert values(await polling) == numbers(20)[10:]
        assert now() == pytest.approx(3, abs=0.01)


@simulated
async def test_poll_returns_nothing_when_its_time_is_over() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        assert await consumer.poll(timeout_ms=1500) == []
        assert now() == pytest.approx(1.5)


@simulated
async def test_poll_returns_no_more_than_max_records() -> None:
    network, _ = one_log(1000)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", max_poll_records=70
    ) as consumer:
        consumer.assign([T0])
        assert len(await consumer.poll()) == 70
        assert values(await consumer.poll(max_records=3)) == numbers(73)[70:]


@simulated
async def test_message_sets_of_old_brokers_are_read() -> None:
    """A record of magic 0 (`b"old"`, no key) and one of magic 1, encoded by hand as Kafka 0.9 and 0.10 stored them."""
    network, log = one_log(10)
    from zlib import crc32

    def message(offset: int, magic: int, timestamp: int | None, value: bytes) -> bytes:
        body = bytes([magic, 0]) + (b"" if timestamp is None else timestamp.to_bytes(8, "big"))
        body += (-1).to_bytes(4, "big", signed=True) + len(value).to_bytes(4, "big") + value
        body = crc32(body).to_bytes(4, "big") + body
        return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body

    old = message(5, 0, None, b"old") + message(6, 1, 1234, b"newer")

    async def serve_old(broker: Broker, request: FetchRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.responses[0].partitions[0].records = old + bytes(log.read(7, 1 << 20))
        return answer

    network.brokers[1].script("Fetch", serve_old)
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 5)
        records = await read(consumer, 3)
        assert [(record.offset, record.timestamp, record.timestamp_type, record.value) for record in records[:2]] == [
            (5, -1, None, b"old"),
            (6, 1234, TimestampType.CREATE_TIME, b"newer"),
        ]
        assert [record.leader_epoch for record in records] == [-1, -1, 0]


# Positions.


@pytest.mark.parametrize(("policy", "position"), [("earliest", 20), ("latest", 100)])
@simulated
async def test_without_a_position_the_policy_says_where_to_begin(policy: Any, position: int) -> None:
    network, log = one_log(100)
    log.start_offset = 20
    async with Consumer(network.bootstrap, network=network, auto_offset_reset=policy) as consumer:
        consumer.assign([T0])
        assert await consumer.position(T0) == position


@pytest.mark.parametrize(
    ("policy", "position"), [("by_duration:PT30M", 2), ("by_duration:P1DT1H", 0), ("by_duration:PT0.5S", 3)]
)
@simulated
async def test_a_duration_says_how_old_the_first_record_may_be(policy: str, position: int) -> None:
    network, log = one_log()
    present = time.time_ns() // 1_000_000
    for offset, age_s in enumerate((7200, 3600, 60)):
        log.add(batch([b"x"], offset, timestamp=present - 1000 * age_s))
    async with Consumer(network.bootstrap, network=network, auto_offset_reset=policy) as consumer:
        consumer.assign([T0])
        assert await consumer.position(T0) == position


@simulated
async def test_without_a_position_and_a_policy_reading_is_an_error_until_the_user_seeks() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(NoOffsetError, match=r'read on t-0: .*"none". Seek, or choose earliest or latest'):
                await consumer.poll()
        with pytest.raises(NoOffsetError):
            await consumer.position(T0)
        consumer.seek(T0, 95)
        assert values(await read(consumer, 5)) == numbers(100)[95:]


@simulated
async def test_a_seek_into_a_batch_skips_the_records_before() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        for offset in (35, 97, 3):
            consumer.seek(T0, offset)
            assert (await consumer.poll())[0].offset == offset


@simulated
async def test_seeks_to_the_beginning_the_end_and_a_time() -> None:
    network, log = one_log(100)
    log.start_offset = 10
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        await consumer.seek_to_beginning()
        assert await consumer.position(T0) == 10
        await consumer.seek_to_end(T0)
        assert await consumer.position(T0) == 100
        await consumer.seek_to_timestamp(42, T0)
        assert (await consumer.poll())[0].offset == 42
        await consumer.seek_to_timestamp(1000)
        assert await consumer.position(T0) == 100


@simulated
async def test_offsets_can_be_asked_for_without_an_assignment() -> None:
    network = ScriptedNetwork(brokers=2)
    for log in network.create("t", 2):
        fill(log, 30)
        log.start_offset = 10
    async with Consumer(network.bootstrap, network=network) as consumer:
        partitions = await consumer.partitions_for("t")
        assert await consumer.beginning_offsets(partitions) == dict.fromkeys(partitions, 10)
        assert await consumer.end_offsets(partitions) == dict.fromkeys(partitions, 30)
        found = await consumer.offsets_for_times({("t", 0): 17, ("t", 1): 1000})
        first = found[partitions[0]]
        assert first is not None
        assert (first.offset, first.timestamp) == (17, 17)
        assert found[partitions[1]] is None


@simulated
async def test_a_seek_does_not_wait_for_a_parked_fetch() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, fetch_max_wait_ms=20000) as consumer:
        consumer.assign([T0])
        assert await consumer.poll(timeout_ms=100) == []
        assert await consumer.poll(timeout_ms=30000) == []
        start = now()
        consumer.seek(T0, 50)
        assert values(await read(consumer, 50)) == numbers(100)[50:]
        assert now() - start < 0.1


@simulated
async def test_what_was_fetched_before_a_seek_is_not_handed_out_after_it() -> None:
    network, _ = one_log(100)
    gate = Gate()
    network.brokers[1].script("Fetch", gate)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        polling = asyncio.create_task(consumer.poll(max_records=1))
        await gate.reached.wait()
        consumer.seek(T0, 80)
        gate.open()
        assert values(await polling) == [b"80"]


@simulated
async def test_an_offset_out_of_range_goes_where_the_policy_says() -> None:
    network, log = one_log(100)
    log.start_offset = 30
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 5)
        assert (await consumer.poll())[0].offset == 30
        consumer.seek(T0, 500)
        assert (await consumer.poll())[0].offset == 30


@simulated
async def test_an_offset_out_of_range_without_a_policy_is_told_and_the_next_seek_repairs_it() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 500)
        for _ in range(2):
            with pytest.raises(
                OffsetOutOfRangeError, match=r"fetch on t-0 at broker1:9092 \(broker 1\): OFFSET_OUT_OF"
            ):
                await consumer.poll()
        assert await consumer.position(T0) == 500
        consumer.seek(T0, 99)
        assert values(await consumer.poll()) == [b"99"]


@simulated
async def test_partitions_that_stay_assigned_keep_their_positions() -> None:
    network = ScriptedNetwork()
    for log in network.create("t", 3):
        fill(log, 20)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        await read(consumer, 40)
        consumer.assign([("t", 1), ("t", 2)])
        assert consumer.assignment() == [("t", 1), ("t", 2)]
        assert await consumer.position(("t", 1)) == 20
        assert {record.partition for record in await read(consumer, 20)} == {2}
        with pytest.raises(ConfigurationError, match="use a partition on t-0: it is not assigned"):
            await consumer.position(("t", 0))


@simulated
async def test_paused_partitions_hand_nothing_out() -> None:
    network = ScriptedNetwork()
    for log in network.create("t", 2):
        fill(log, 50)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        await consumer.poll(max_records=1)
        consumer.pause(("t", 0))
        assert {record.partition for record in await read(consumer, 49)} <= {1}
        consumer.resume()
        rest = await read(consumer, 50)
        assert {record.partition for record in rest} >= {0}


def refuse_offsets(code: ErrorCode) -> Any:
    async def answer(broker: Broker, request: ListOffsetsRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.topics[0].partitions[0].error_code = code
        return answer

    return answer


@simulated
async def test_a_lookup_is_repeated_until_every_leader_has_answered() -> None:
    network = ScriptedNetwork(brokers=2)
    logs = network.create("t", 4)
    for log in logs:
        fill(log, 10 + 10 * log.partition)
    network.brokers[1].script("ListOffsets", refuse_offsets(ErrorCode.NOT_LEADER_OR_FOLLOWER), drop_unread)
    network.brokers[2].script("ListOffsets", refuse_offsets(ErrorCode.OFFSET_NOT_AVAILABLE))
    logs[3].leader = -1
    async with Consumer(network.bootstrap, network=network) as consumer:
        asking = asyncio.create_task(consumer.end_offsets(await consumer.partitions_for("t")))
        await asyncio.sleep(3)
        assert not asking.done()
        network.move(logs[3], to=1)
        assert await asking == {("t", partition): 10 + 10 * partition for partition in range(4)}


@simulated
async def test_a_lookup_that_takes_too_long_says_what_was_in_the_way() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network, default_api_timeout_ms=3000) as consumer:
        await consumer.partitions_for("t")
        network.brokers[1].script("ListOffsets", *[refuse_offsets(ErrorCode.OFFSET_NOT_AVAILABLE)] * 100)
        with pytest.raises(BrokerError, match=r"look up an offset on t-0 at broker1:9092 .*OFFSET_NOT_AVAILABLE"):
            await consumer.end_offsets([T0])
        assert now() == pytest.approx(3, abs=0.1)
        network.brokers[1]._scripts.clear()
        network.brokers[1].script("ListOffsets", Gate())
        with pytest.raises(TimeLimitError, match="look up an offset: no answer within 3000 ms"):
            await consumer.end_offsets([T0])


@simulated
async def test_a_lookup_that_is_refused_for_good_fails_at_once() -> None:
    network, _ = one_log(10)
    network.brokers[1].script("ListOffsets", refuse_offsets(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    async with Consumer(network.bootstrap, network=network) as consumer:
        with pytest.raises(AuthorizationError, match="look up an offset on t-0"):
            await consumer.end_offsets([T0])
        assert now() < 0.1


# What is not for users.


@simulated
async def test_control_batches_are_stepped_over() -> None:
    network, log = one_log(10)
    log.add(build_end_txn_marker(EndTxnMarker(ControlRecordType.COMMIT, 0), 7, 0, 0, base_offset=10))
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)
        assert await consumer.poll(timeout_ms=100) == []
        assert await consumer.position(T0) == 11


def transactions(log: Log) -> None:
    """Committed, aborted, none, and again by the producer whose transaction was aborted before."""

    def add(value: bytes, producer_id: int = -1) -> None:
        log.add(batch([value], log.end_offset, producer_id=producer_id, is_transactional=producer_id >= 0))

    def end(producer_id: int, how: ControlRecordType) -> None:
        log.add(build_end_txn_marker(EndTxnMarker(how, 0), producer_id, 0, 0, base_offset=log.end_offset))

    add(b"committed", 1)
    log.aborted.append(AbortedTransaction(2, log.end_offset))
    add(b"aborted", 2)
    add(b"plain")
    end(1, ControlRecordType.COMMIT)
    add(b"aborted too", 2)
    end(2, ControlRecordType.ABORT)
    add(b"again", 2)
    end(2, ControlRecordType.COMMIT)


@simulated
async def test_readers_of_committed_records_do_not_see_aborted_ones() -> None:
    network, log = one_log()
    transactions(log)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 3)) == [b"committed", b"plain", b"again"]
        assert await consumer.poll(timeout_ms=10) == []
        assert await consumer.position(T0) == 8


@simulated
async def test_readers_of_uncommitted_records_see_all_of_them() -> None:
    network, log = one_log()
    transactions(log)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 5)) == [b"committed", b"aborted", b"plain", b"aborted too", b"again"]


# What cannot be read.


@simulated
async def test_a_batch_with_a_wrong_checksum_is_told_after_the_records_before_it() -> None:
    network, log = one_log(30)
    log.data[-1] ^= 1
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 20)) == numbers(20)
        for _ in range(2):
            with pytest.raises(
                CorruptRecordsError, match=r"read the batch at offset 20 on t-0: the checksum is wrong. Seek past it"
            ) as told:
                await consumer.poll()
            assert told.value.offset == 20
            assert await consumer.position(T0) == 20
        fill(log, 10)
        consumer.seek(T0, 30)
        assert values(await read(consumer, 10)) == numbers(40)[30:]


@simulated
async def test_a_wrong_checksum_stops_iteration_too() -> None:
    network, log = one_log(30)
    log.data[-1] ^= 1
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert [(await anext(consumer)).value for _ in range(20)] == numbers(20)
        with pytest.raises(CorruptRecordsError):
            await anext(consumer)


@simulated
async def test_checksums_are_not_looked_at_when_they_are_not_wanted() -> None:
    network, log = one_log(10)
    log.data[17] ^= 1
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest", check_crcs=False) as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)


@simulated
async def test_bytes_that_are_no_batch_are_told() -> None:
    network, log = one_log(20)
    size = log.headers()[0].size
    log.data[size + 16] = 77  # the magic of the second batch
    log.read = lambda offset, max_bytes: bytes(log.data if offset < 10 else log.data[size:])  # type: ignore[method-assign]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)
        with pytest.raises(CorruptRecordsError, match=r"offset 10 on t-0: .*magic 77"):
            await consumer.poll()


@simulated
async def test_a_batch_that_is_cut_off_where_it_must_not_be_is_told() -> None:
    network, log = one_log(10)
    log.read = lambda offset, max_bytes: bytes(log.data[:50])  # type: ignore[method-assign]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        with pytest.raises(CorruptRecordsError, match="offset 0 on t-0: the broker sent no more than a part of it"):
            await consumer.poll()


# Failures on the way.


@pytest.mark.parametrize("how", [drop_unread, serve_and_drop])
@simulated
async def test_a_lost_fetch_is_repeated(how: Any) -> None:
    network, _ = one_log(100)
    network.brokers[1].script("Fetch", how)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 100)) == numbers(100)


@simulated
async def test_reading_follows_the_leader() -> None:
    network, log = one_log(50, brokers=2)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 50)
        network.move(log, to=2)
        fill(log, 50)
        assert values(await read(consumer, 50)) == numbers(100)[50:]


@simulated
async def test_a_refusal_that_names_the_new_leader_costs_no_pause() -> None:
    network, log = one_log(50, brokers=2)

    async def name_the_leader(broker: Broker, request: FetchRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(log.leader, log.leader_epoch)
        return answer

    async with Consumer(
        network.bootstrap, network=network, retry_backoff_ms=900, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([T0])
        await consumer.position(T0)
        network.move(log, to=2)
        network.brokers[1].script("Fetch", name_the_leader)
        start = now()
        assert len(await read(consumer, 50)) == 50
        assert now() - start < 0.1


@simulated
async def test_a_broker_that_is_down_for_a_while_delays_and_loses_nothing() -> None:
    network, log = one_log(10)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 10)
        network.brokers[1].go_down()
        assert await consumer.poll(timeout_ms=20000) == []
        fill(log, 10)
        network.brokers[1].come_up()
        start = now()
        assert values(await read(consumer, 10)) == numbers(20)[10:]
        assert now() - start < 3


@simulated
async def test_what_may_not_be_read_is_told_at_each_poll() -> None:
    network, _ = one_log(10)

    async def refuse(broker: Broker, request: FetchRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.responses[0].partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer

    network.brokers[1].script("Fetch", refuse, refuse)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(AuthorizationError, match="fetch on t-0 at broker1:9092"):
                await consumer.poll()
        assert values(await read(consumer, 10)) == numbers(10)


@simulated
async def test_a_topic_that_cannot_be_found_is_told_and_holds_up_no_other() -> None:
    network, _ = one_log(10)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", default_api_timeout_ms=5000
    ) as consumer:
        consumer.assign([T0, ("nowhere", 0)])
        assert values(await read(consumer, 10)) == numbers(10)
        assert now() < 1
        with pytest.raises(UnknownTopicError, match="find a topic on nowhere"):
            await consumer.poll()
        assert now() == pytest.approx(5, abs=0.5)
        with pytest.raises(UnknownTopicError, match=r"look up an offset on t-3: .*the topic has 1 partitions"):
            await consumer.end_offsets([("t", 3)])


# Bounds.


@simulated
async def test_no_more_is_fetched_ahead_than_two_answers_of_a_partition() -> None:
    network, _ = one_log(1000)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", max_partition_fetch_bytes=500
    ) as consumer:
        consumer.assign([T0])
        await consumer.poll(max_records=1)
        await asyncio.sleep(60)
        assert len(network.brokers[1].received(FetchRequest)) == 2
        assert values(await read(consumer, 999)) == numbers(1000)[1:]


@simulated
async def test_an_idle_partition_does_not_hold_up_one_whose_buffers_are_full() -> None:
    network = ScriptedNetwork()
    busy, _ = network.create("t", 2)
    fill(busy, 1000)
    async with Consumer(
        network.bootstrap,
        network=network,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=500,
        fetch_max_wait_ms=10000,
    ) as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        await consumer.poll(max_records=1)
        await asyncio.sleep(5)
        start = now()
        await read(consumer, 999)
        assert now() - start < 0.2


@simulated
async def test_nothing_is_fetched_before_the_first_poll() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await consumer.position(T0)
        await asyncio.sleep(10)
        assert network.brokers[1].received(FetchRequest) == []


# Versions.


@simulated
async def test_topics_go_by_name_to_brokers_without_topic_ids() -> None:
    network, _ = one_log(10, with_topic_ids=False)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)


@simulated
async def test_old_versions_are_spoken_to_old_brokers() -> None:
    network, _ = one_log(10)
    for name, version in (("Fetch", 4), ("Metadata", 4), ("ListOffsets", 2), ("ApiVersions", 0)):
        network.brokers[1].limit(name, version)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)


# The end.


@simulated
async def test_close_ends_iteration_and_a_poll_that_waits() -> None:
    network, _ = one_log()
    consumer = Consumer(network.bootstrap, network=network)
    await consumer.start()
    consumer.assign([T0])

    async def iterate() -> list[ConsumerRecord]:
        return [record async for record in consumer]

    iterating = asyncio.create_task(iterate())
    await asyncio.sleep(1)
    await consumer.close()
    assert await iterating == []
    with pytest.raises(ClosedError):
        await consumer.poll()
    assert len(asyncio.all_tasks()) == 1


# Everything at once.


@pytest.mark.parametrize("seed", range(10))
@simulated
async def test_whatever_happens_every_record_is_read_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    network = ScriptedNetwork(brokers=3, piece_size=chance.choice([7, 1000, 100000]), with_sessions=seed % 2 == 1)
    logs = network.create("t", 4)

    async def trouble() -> None:
        for _ in range(60):
            await asyncio.sleep(chance.expovariate(10))
            broker = network.brokers[chance.randrange(1, 4)]
            broker.sessions.forget()
            match chance.randrange(5):
                case 0:
                    broker.script("Fetch", chance.choice([drop_unread, serve_and_drop]))
                case 1:
                    broker.drop_connections()
                case 2:
                    network.move(chance.choice(logs), to=chance.randrange(1, 4))
                case 3:
                    broker.go_down()
                    await asyncio.sleep(chance.expovariate(1))
                    broker.come_up()
                case _:
                    for log in logs:
                        fill(log, 20)
        for log in logs:
            fill(log, 500 - log.end_offset % 500)

    async with Consumer(
        network.bootstrap,
        network=network,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=chance.choice([100, 1000, 100000]),
    ) as consumer:
        consumer.assign(await consumer.partitions_for("t"))
        troubling = asyncio.create_task(trouble())
        seen: dict[int, list[bytes | None]] = {log.partition: [] for log in logs}
        while not troubling.done() or any(len(seen[log.partition]) < log.end_offset for log in logs):
            for record in await consumer.poll(timeout_ms=100, max_records=chance.randrange(1, 500)):
                seen[record.partition].append(record.value)
        await troubling
    for log in logs:
        assert seen[log.partition] == log.values()


def test_records_of_a_log_and_of_a_consumer_have_the_same_fields() -> None:
    fields = ConsumerRecord.__struct_fields__
    assert fields[:2] == ("topic", "partition")
    assert fields[2 : 2 + len(Record._fields)] == Record._fields
