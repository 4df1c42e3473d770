from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import confluent_kafka
import pytest

from odradek.client import ConsumerRecord, UnknownTopicError
from odradek.testing import Kafka, KafkaTimeoutError

T = TypeVar("T")


NewReader = Callable[..., confluent_kafka.Consumer]


@pytest.fixture
def new_reader(kafka: Kafka) -> Iterator[NewReader]:
    """A function that makes consumers of the group `readers`, which are closed after the test."""
    made: list[confluent_kafka.Consumer] = []

    def new(**settings: object) -> confluent_kafka.Consumer:
        common = {"bootstrap.servers": kafka.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        made.append(confluent_kafka.Consumer(common | {"log_level": 0} | settings))
        return made[-1]

    yield new
    for reader in made:
        reader.close()


def consume(reader: confluent_kafka.Consumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        values += [message.value() for message in reader.consume(count - len(values), 10)]
    return values


class Background(threading.Thread):
    """A wait of a test on another thread; `result` returns its result or raises its error."""

    def __init__(self, kafka: Kafka, wait: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._kafka, self._wait = kafka, wait
        self._error: BaseException | None = None
        self._result: Any = None
        self.start()

    def run(self) -> None:
        try:
            self._result = asyncio.run(self._await())
        except Exception as error:  # noqa: BLE001 - raised by result
            self._error = error

    async def _await(self) -> Any:
        return await self._wait

    def result(self) -> Any:
        self.join()
        if self._error is not None:
            raise self._error
        return self._result


def test_a_topic_has_one_partition_unless_the_test_wants_more(kafka: Kafka) -> None:
    assert kafka.topic("one") == "one"
    kafka.topic("many", partitions=3)

    admin = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
    topics = admin.list_topics(timeout=10).topics
    assert len(topics.pop("__consumer_offsets").partitions) == 1  # of the broker, not of the test
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {"one": 1, "many": 3}


def test_a_topic_that_exists_is_returned(kafka: Kafka) -> None:
    kafka.topic("many", partitions=3)
    assert kafka.topic("many") == "many"
    assert kafka.topic("many", partitions=3) == "many"
    with pytest.raises(ValueError, match="the topic many exists with 3 partitions, not 2"):
        kafka.topic("many", partitions=2)


def test_records_go_in_as_values_pairs_and_records_and_come_out_as_records(kafka: Kafka) -> None:
    kafka.topic("orders", partitions=2)
    whole = ConsumerRecord("elsewhere", 1, 77, 1_700_000_000_000, b"k", b"v", (("shop", b"x"),))

    places = kafka.produce("orders", [whole, (b"key", None)])
    kafka.topic("values")
    kafka.produce("values", [b"a", b"b"])

    assert (places[0].partition, places[0].offset, places[0].timestamp) == (1, 0, 1_700_000_000_000)
    read = {record.key: record for record in kafka.records("orders")}
    assert read[b"key"].value is None
    found = read[b"k"]
    assert (found.value, found.headers, found.offset) == (b"v", (("shop", b"x"),), 0)
    assert (found.partition, found.timestamp) == (1, 1_700_000_000_000)
    assert [(each.offset, each.value, each.key) for each in kafka.records("values")] == [
        (0, b"a", None),
        (1, b"b", None),
    ]


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        (b"ab", "produce takes a list of records, not b'ab' alone"),
        (["text"], "'text' is no record: .* encode it"),
        ([("k", "v")], r"\('k', 'v'\) is no record"),
        ([1], "1 is no record"),
    ],
)
def test_anything_else_is_no_record(kafka: Kafka, records: Any, complaint: str) -> None:
    kafka.topic("orders")
    with pytest.raises(TypeError, match=complaint):
        kafka.produce("orders", records)
    assert kafka.records("orders") == []


def test_records_of_a_missing_topic_are_an_error(kafka: Kafka) -> None:
    with pytest.raises(UnknownTopicError, match="no-such-topic"):
        kafka.records("no-such-topic")


def test_aborted_records_are_left_out_and_committed_ones_are_there_at_once(kafka: Kafka) -> None:
    kafka.topic("orders")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(10)
    for value, end in ((b"committed", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value)
        end(10)
        assert [record.value for record in kafka.records("orders")] == [b"committed"]
    producer.begin_transaction()
    producer.produce("orders", b"open")
    producer.flush()
    assert [record.value for record in kafka.records("orders")] == [b"committed"]
    producer.abort_transaction(10)


def test_a_wait_for_records_ends_with_the_last_of_them(kafka: Kafka) -> None:
    waiting = Background(kafka, kafka.aio.wait_for_records("orders", 2))  # the topic does not exist yet
    kafka.topic("orders")
    kafka.produce("orders", [b"a"])
    kafka.produce("orders", [b"b", b"c"])
    assert [record.value for record in waiting.result()] == [b"a", b"b"]


def test_only_records_count_that_the_test_wants(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"socks", b"shoes", b"socks"])
    found = kafka.wait_for_records("orders", 2, where=lambda record: record.value == b"socks")
    assert [record.offset for record in found] == [0, 2]


def test_a_wait_for_records_that_do_not_come_shows_what_is_there(kafka: Kafka) -> None:
    kafka.topic("orders")
    confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "client.id": "shop"}).list_topics(timeout=10)
    kafka.produce("orders", [(b"key", b"socks")])
    with pytest.raises(KafkaTimeoutError) as raised:
        kafka.wait_for_records("orders", 2, timeout=1)
    text = str(raised.value)
    assert text.startswith("waited 1 s for 2 records of orders\ntopic orders, offsets by partition: 0: 0–1\n")
    assert "\n1 record arrived:\n  0:0 b'key' b'socks'\n" in text
    assert re.search(r' Metadata v\d+ from .* "shop": answered after .* ms$', text, re.MULTILINE)
    assert isinstance(raised.value, TimeoutError)


def test_a_failed_wait_shows_a_few_of_the_records_that_did_arrive_and_which_of_them_it_wants(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"%02d" % number for number in range(12)])
    kafka.produce("orders", [(None, b"x" * 100_000)], headers={f"h{number}": b"y" * 100 for number in range(7)})
    with pytest.raises(KafkaTimeoutError) as raised:
        kafka.wait_for_records("orders", 2, where=lambda record: record.value == b"10", timeout=0.5)
    lines = str(raised.value).splitlines()
    assert lines[2] == "13 records arrived, 1 of them as the test wants (*); the last 10:"
    assert lines[3:12] == [f"  {'*' if n == 10 else ' '} 0:{n} None {b'%02d' % n!r}" for n in range(3, 12)]
    assert lines[12].startswith(f"    0:12 None {b'x' * 60!r}… (100000 bytes) h0={b'y' * 60!r}… (100 bytes) h1=")
    assert lines[12].endswith(" …")
    assert len(lines[12]) < 1000


def test_a_topic_without_records_passes(kafka: Kafka) -> None:
    kafka.topic("orders", partitions=2)
    kafka.assert_no_records("orders", seconds=0.05)
    kafka.produce("orders", [b"socks"])
    kafka.assert_no_records("orders", seconds=0, where=lambda record: record.value == b"shoes")


@pytest.mark.parametrize("seconds", [0, 10])
def test_a_topic_with_records_fails_and_they_are_shown(kafka: Kafka, seconds: float) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"socks"])
    with pytest.raises(AssertionError, match=f"orders should have no records, within {seconds} s\n1 record arrived:"):
        kafka.assert_no_records("orders", seconds)
    with pytest.raises(AssertionError, match="for which the test's condition is true, within"):
        kafka.assert_no_records("orders", seconds, where=lambda record: record.offset == 0)


def test_a_record_that_arrives_too_early_fails_at_once(kafka: Kafka) -> None:
    waiting = Background(kafka, kafka.aio.assert_no_records("orders", 60))  # the topic does not exist yet
    kafka.topic("orders")
    kafka.produce("orders", [b"socks"])
    with pytest.raises(AssertionError, match="0:0 None b'socks'"):
        waiting.result()


def test_no_records_of_a_missing_topic_is_an_error(kafka: Kafka) -> None:
    with pytest.raises(UnknownTopicError, match="no-such-topic"):
        kafka.assert_no_records("no-such-topic", seconds=0)


def test_aborted_records_are_no_records(kafka: Kafka) -> None:
    kafka.topic("orders")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"aborted")
    producer.abort_transaction(10)
    kafka.assert_no_records("orders", seconds=0)


def test_an_error_of_the_condition_is_the_error_of_the_wait(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"a"])
    with pytest.raises(ZeroDivisionError):
        kafka.wait_for_records("orders", 1, where=lambda record: bool(record.offset / 0))


def test_a_group_is_at_lag_zero_when_it_has_committed_everything(kafka: Kafka, new_reader: NewReader) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"a", b"b"])
    waiting = Background(kafka, kafka.aio.wait_for_lag_zero("readers"))  # the group does not exist yet
    reader = new_reader(**{"enable.auto.commit": False})
    reader.subscribe(["orders"])
    assert consume(reader, 2) == [b"a", b"b"]
    assert waiting.is_alive()  # nothing is committed
    reader.commit(asynchronous=False)
    waiting.result()


def test_a_group_that_has_not_committed_everything_is_described(kafka: Kafka, new_reader: NewReader) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"a", b"b"])
    reader = new_reader(**{"enable.auto.commit": False, "client.id": "shop"})
    reader.subscribe(["orders"])
    consume(reader, 2)
    reader.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 1)], asynchronous=False)
    with pytest.raises(KafkaTimeoutError) as raised:
        kafka.wait_for_lag_zero("readers", timeout=0.05)
    lines = str(raised.value).splitlines()
    assert lines[:4] == [
        "waited 0.05 s for lag zero of group readers",
        "group readers: Stable, classic, 1 member",
        "  member shop at /127.0.0.1: orders-0",
        "  orders-0: committed 1, end 2, lag 1",
    ]
    assert any(" OffsetCommit " in line for line in lines[-3:])  # a fetch may follow


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_the_markers_of_transactions_are_no_lag(kafka: Kafka, new_reader: NewReader, ending: str) -> None:
    kafka.topic("orders")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"a")
    producer.commit_transaction(10)
    if ending == "abort":
        producer.begin_transaction()
        producer.produce("orders", b"b")
        producer.abort_transaction(10)
    reader = new_reader()
    reader.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 1)], asynchronous=False)
    kafka.wait_for_lag_zero("readers")


def test_records_of_an_open_transaction_are_lag(kafka: Kafka, new_reader: NewReader) -> None:
    kafka.topic("orders")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"a")
    producer.flush()
    reader = new_reader()
    reader.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 0)], asynchronous=False)
    with pytest.raises(KafkaTimeoutError):
        kafka.wait_for_lag_zero("readers", timeout=0.5)
    producer.abort_transaction(10)


def test_a_group_that_nobody_has_is_described_as_such(kafka: Kafka) -> None:
    with pytest.raises(KafkaTimeoutError, match="group readers does not exist"):
        kafka.wait_for_lag_zero("readers", timeout=0.05)


@pytest.mark.parametrize(("protocol", "members"), [("classic", 2), ("consumer", 1)])
def test_members_are_waited_for_as_they_come_and_go(
    kafka: Kafka, new_reader: NewReader, protocol: str, members: int
) -> None:
    kafka.topic("orders", partitions=2)
    kafka.wait_for_members("readers", 0)
    waiting = Background(kafka, kafka.aio.wait_for_members("readers", members))  # the group does not exist yet
    readers = [new_reader(**{"group.protocol": protocol}) for _ in range(members)]
    for reader in readers:
        reader.subscribe(["orders"])
    while waiting.is_alive():
        for reader in readers:
            reader.poll(0.01)
    waiting.result()
    for reader in readers:
        reader.close()
    kafka.wait_for_members("readers", 0)


def test_another_number_of_members_is_described(kafka: Kafka, new_reader: NewReader) -> None:
    kafka.topic("orders")
    reader = new_reader(**{"client.id": "shop"})
    reader.subscribe(["orders"])
    while not reader.assignment():
        reader.poll(0.05)
    kafka.wait_for_members("readers", 1)
    with pytest.raises(KafkaTimeoutError, match=r"waited 0.05 s for 2 members of group readers\n.*\n  member shop"):
        kafka.wait_for_members("readers", 2, timeout=0.05)


async def test_a_blocking_call_on_a_running_loop_names_its_twin(kafka: Kafka) -> None:
    for name, call in {
        "topic": lambda: kafka.topic("orders"),
        "produce": lambda: kafka.produce("orders", []),
        "records": lambda: kafka.records("orders"),
        "wait_for_records": lambda: kafka.wait_for_records("orders", 1),
        "assert_no_records": lambda: kafka.assert_no_records("orders"),
        "wait_for_lag_zero": lambda: kafka.wait_for_lag_zero("g"),
        "wait_for_members": lambda: kafka.wait_for_members("g", 1),
        "describe": kafka.describe,
    }.items():
        with pytest.raises(RuntimeError, match=re.escape(f"write `await kafka.aio.{name}(…)`")):
            call()


async def test_the_twin_waits_on_the_loop_of_the_test(kafka: Kafka) -> None:
    assert await kafka.aio.topic("orders") == "orders"
    waiting = asyncio.create_task(kafka.aio.wait_for_records("orders", 1))
    await kafka.aio.produce("orders", [b"a"])
    assert [record.value for record in await waiting] == [b"a"]
    assert [record.value for record in await kafka.aio.records("orders")] == [b"a"]
    await kafka.aio.wait_for_members("readers", 0)
    with pytest.raises(KafkaTimeoutError):
        await kafka.aio.wait_for_lag_zero("readers", timeout=0.05)


async def test_a_cancelled_wait_ends(kafka: Kafka) -> None:
    waiting = asyncio.create_task(kafka.aio.wait_for_records("orders", 1, timeout=None))
    await kafka.aio.topic("orders")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
