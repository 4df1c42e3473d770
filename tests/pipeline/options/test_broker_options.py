from __future__ import annotations

from collections.abc import Mapping

import pytest

from odradek.client.record import TopicPartition
from odradek.pipeline.options.bounds import EARLIEST, LATEST, bound_at
from odradek.pipeline.options.broker_options import Subscription, batch_read_options, stream_read_options, write_options

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}
READ = BROKER | {"subscribe": "t"}


def test_defaults_are_those_of_the_connector() -> None:
    batch, stream = batch_read_options(READ), stream_read_options(READ)
    assert (batch.start, batch.end) == (bound_at(EARLIEST), bound_at(LATEST))
    assert (stream.start, stream.max_offsets, stream.max_delay_ms) == (bound_at(LATEST), None, 15 * 60_000)
    assert (batch.fail_on_data_loss, batch.include_headers, batch.isolation_level) == (True, False, "read_uncommitted")


def test_names_are_case_insensitive() -> None:
    read = stream_read_options(
        BROKER | {"subscribePattern": "t.*", "startingOffsets": "EARLIEST", "maxOffsetsPerTrigger": "7"}
    )
    assert (read.subscription.pattern, read.start, read.max_offsets) == ("t.*", bound_at(EARLIEST), 7)


def test_offsets_and_times_by_partition_are_parsed() -> None:
    read = batch_read_options(
        READ | {"startingOffsets": '{"t": {"0": 23, "1": -2}}', "endingOffsetsByTimestamp": '{"t": {"0": 5, "1": 6}}'}
    )
    assert read.start.each == {TopicPartition("t", 0): 23, TopicPartition("t", 1): EARLIEST}
    assert read.end.by_time
    assert read.end.each == {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6}


def test_a_time_takes_precedence_over_times_by_partition_and_these_over_offsets() -> None:
    offsets = {"startingOffsets": "latest"}
    by_partition = offsets | {"startingOffsetsByTimestamp": '{"t": {"0": 5}}'}
    assert batch_read_options(READ | by_partition).start.each == {TopicPartition("t", 0): 5}
    assert batch_read_options(READ | by_partition | {"startingTimestamp": "9"}).start.everywhere == 9


def test_an_empty_assignment_is_allowed() -> None:
    assert batch_read_options(BROKER | {"assign": '{"t": []}'}).subscription == Subscription()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers is missing"),
        (BROKER, "no topic to read: give one of subscribe, subscribePattern and assign"),
        (READ | {"assign": '{"t": [0]}'}, "subscribe and assign are given, but only one"),
        (BROKER | {"subscribe": " , "}, "subscribe names no topic"),
        (BROKER | {"assign": "t"}, 'assign must be JSON such as {"orders": \\[0, 1\\]}, not t'),
        (BROKER | {"assign": '{"t": "0"}'}, 'assign must be JSON such as {"orders": \\[0, 1\\]}'),
        (BROKER | {"subscribePattern": "("}, "is not a regular expression"),
        (READ | {"startingOffsets": "latest"}, "a batch has nothing to read if startingOffsets is latest"),
        (READ | {"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets is latest for t-0"),
        (READ | {"endingOffsets": "earliest"}, "endingOffsets is earliest"),
        (READ | {"endingOffsets": '{"t":{"0":-2}}'}, "endingOffsets is earliest for t-0"),
        (READ | {"startingOffsets": "somewhere"}, "startingOffsets must be JSON such as"),
        (READ | {"startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets has a number below -2"),
        (READ | {"startingTimestamp": "yesterday"}, "must be a time in milliseconds since 1970, not yesterday"),
        (READ | {"minPartitions": "0"}, "at least 1"),
        (READ | {"failOnDataLoss": "perhaps"}, "choose one of true, false"),
        (READ | {"kafka.auto.offset.reset": "earliest"}, "startingOffsets sets where a query starts"),
        (READ | {"kafka.value.deserializer": "x"}, "values are bytes"),
        (READ | {"startingOfsets": "earliest"}, "'startingofsets' is not supported"),
        (READ | {"isolation.level": "none"}, "choose one of read_uncommitted, read_committed"),
    ],
)
def test_errors_of_read_options_name_the_option(options: Mapping[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        batch_read_options(options)


@pytest.mark.parametrize("name", ["kafka.client.rack", "kafka.group.id", "kafka.metrics.num.samples"])
def test_options_that_tune_the_connector_are_ignored(name: str) -> None:
    assert batch_read_options(READ | {name: "1"}) == batch_read_options(READ)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_rejects_ending_offsets(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name.lower()} applies to batches only: a stream has no end"):
        stream_read_options(READ | {name: "1"})


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"])
def test_a_batch_ignores_options_of_triggers(name: str) -> None:
    assert batch_read_options(READ | {name: "no number"}) == batch_read_options(READ)
    with pytest.raises(ValueError, match=f"(?i){name} is 'no number'"):
        stream_read_options(READ | {name: "no number"})


def test_a_minimum_above_the_maximum_is_rejected() -> None:
    with pytest.raises(ValueError, match="minOffsetsPerTrigger 6 is above maxOffsetsPerTrigger 5"):
        stream_read_options(READ | {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka.acks": "1"}, "all only"),
        ({"kafka.enable.idempotence": "false"}, "true only"),
        ({"kafka.transactional.id": "x"}, "the sink does not write in transactions"),
        ({"kafka.compression.type": "lzma"}, "choose one of none, gzip"),
        ({"kafka.compression.type": "zstd", "kafka.compression.zstd.level": "99"}, "zstd has the levels"),
    ],
)
def test_errors_of_write_options_name_the_option(options: Mapping[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_options(BROKER | options)


def test_the_timeout_of_connecting_is_that_of_kafkas_consumer_or_producer() -> None:
    given = READ | {"kafka.default.api.timeout.ms": "7000", "kafka.max.block.ms": "9000"}
    assert batch_read_options(given).cluster.timeout_ms == 7000
    assert write_options(given).cluster.timeout_ms == 9000
    assert batch_read_options(READ).cluster.timeout_ms == write_options(BROKER).cluster.timeout_ms == 60_000


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("kafka.max.partition.fetch.bytes", "a number of bytes, such as 1048576"),
        ("kafka.request.timeout.ms", "a number of milliseconds, such as 1000"),
        ("minPartitions", "a number"),
    ],
)
def test_a_number_that_is_none_is_answered_with_its_unit(name: str, unit: str) -> None:
    with pytest.raises(ValueError, match=f"{name.lower()} is '1x': write {unit}, at least [01]$"):
        batch_read_options(READ | {name: "1x"})
