from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from odradek.broker.broker import Broker
from odradek.broker.config.property import attribute_name
from odradek.broker.config.topic_config import TOPIC_PROPERTIES, TopicProperty
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.records.batch_header import batch_headers
from tests.effort import some
from tests.handlers.configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    change,
    own_values,
    set_to,
)
from tests.handlers.requests import NOW, batch, create, fetch, produce
from tests.wire import Wire

# Apache Kafka's broker hears of a change some milliseconds after the answer; tests/interop compares the answers.
pytestmark = pytest.mark.usefixtures("only_here")

BIG = batch(b"x" * 5000)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("version", range(2))
async def test_single_properties_of_a_topic_change(wire: Wire, version: int) -> None:
    await create(wire, "t", retention_ms="5000", flush_ms="7")

    operations = (("retention.ms", SET, "6000"), ("flush.ms", DELETE, None), ("segment.ms", DELETE, None))
    response = await change(wire, TOPIC, "t", *operations, version=version)

    assert response.error_code == ErrorCode.NONE
    assert await own_values(wire, TOPIC, "t") == {"retention.ms": "6000"}


async def test_lists_grow_and_shrink(wire: Wire) -> None:
    await create(wire, "t")

    for operation, value, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "compact", ""),
        (APPEND, "delete", "delete"),
    ):
        assert (await change(wire, TOPIC, "t", ("cleanup.policy", operation, value))).error_code == ErrorCode.NONE
        assert await own_values(wire, TOPIC, "t") == {"cleanup.policy": expected}


@pytest.mark.parametrize(
    ("resource", "operations", "code"),
    [
        ("t", [("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ("t", [("no.such", SUBTRACT, "5")], ErrorCode.INVALID_CONFIG),
        ("t", [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ("t", [("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        ("t", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_CONFIG),
        ("t", [("cleanup.policy", APPEND, "shred")], ErrorCode.INVALID_CONFIG),
        ("t", [("retention.ms", SET, "5"), ("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        ("t", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ("t", [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ("missing", [("retention.ms", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ("bad name", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", [("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_invalid_changes_of_a_topic_are_refused(
    wire: Wire, resource: str, operations: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    await create(wire, "t", flush_ms="7")

    assert (await change(wire, TOPIC, resource, *operations)).error_code == code
    assert await own_values(wire, TOPIC, "t") == {"flush.ms": "7"}


async def test_an_unknown_operation_is_refused(wire: Wire) -> None:
    await create(wire, "t")

    assert (await change(wire, TOPIC, "t", ("retention.ms", 4, "5"))).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "resource", "operation", "code"),
    [
        (BROKER, "1", ("node.id", SET, "2"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.hours", SET, "2"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.ms", SET, "soon"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.ms", SET, "0"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER, "1", ("log.retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("node.id", DELETE, None), ErrorCode.NONE),
        (BROKER, "", ("log.segment.bytes", SET, "many"), ErrorCode.INVALID_REQUEST),
        (BROKER, "2", ("log.retention.ms", SET, "1000"), ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ("log.retention.ms", SET, "1000"), ErrorCode.INVALID_REQUEST),
        (3, "x", ("a", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "2", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_invalid_changes_of_other_resources_are_refused(
    wire: Wire, kind: int, resource: str, operation: tuple[str, int, str | None], code: ErrorCode
) -> None:
    assert (await change(wire, kind, resource, operation)).error_code == code


RELOGIN = "sasl.kerberos.min.time.before.relogin"


async def test_a_broker_property_without_effect_is_stored_and_described(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await change(wire, BROKER, "1", (RELOGIN, SET, "58000"))).error_code == ErrorCode.NONE
    assert (await change(wire, BROKER, "1", ("log.roll.ms", SET, "5000"))).error_code == ErrorCode.NONE

    assert await own_values(wire, BROKER, "1") == {RELOGIN: "58000", "log.roll.ms": "5000"}
    assert len([record for record in caplog.records if RELOGIN in record.getMessage()]) == 1


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ssl.keystore.location", "/keys", "only be set for a single listener, as listener.name.<listener>.ssl.k"),
        ("ssl.key.password", "guess", "only be set in the broker's file"),
        ("sasl.enabled.mechanisms", "PLAIN", "only be set in the broker's file"),
        ("principal.builder.class", "org.example.Principals", "only be set in the broker's file"),
        ("metric.reporters", "org.example.Reporter", "metrics.port"),
        ("listener.name.plaintext.ssl.keystore.location", "/keys", "only be set to the value"),
        ("listener.name.elsewhere.ssl.keystore.location", "/keys", "no broker property"),
        ("super.users", "User:admin", "Cannot update these configs dynamically"),
        ("authorizer.class.name", "org.example.Authorizer", "Cannot update these configs dynamically"),
        ("log.segment.byte", "1048576", "did you mean log.segment.bytes?"),
        (RELOGIN, "soon", "Not a number of type LONG"),
    ],
)
async def test_unsupported_values_are_refused_with_the_reason(wire: Wire, name: str, value: str, reason: str) -> None:
    response = await change(wire, BROKER, "1", (name, SET, value))

    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert reason in (response.error_message or "")


async def test_min_insync_replicas_is_the_same_for_all_brokers(wire: Wire) -> None:
    name = "min.insync.replicas"

    assert (await change(wire, BROKER, "1", (name, SET, "2"))).error_code == ErrorCode.INVALID_CONFIG
    assert (await change(wire, BROKER, "1", (name, DELETE, None))).error_code == ErrorCode.INVALID_CONFIG
    assert (await change(wire, BROKER, "", (name, DELETE, None))).error_code == ErrorCode.INVALID_CONFIG
    assert (await change(wire, BROKER, "", (name, SET, "2"))).error_code == ErrorCode.NONE
    assert await own_values(wire, BROKER, "") == {name: "2"}


# Differs from Kafka: the first is read at the start alone; the next two name classes, which there are none of here; how
# clients authenticate is not for clients to change.
REFUSED_HERE = {
    *("log.cleaner.threads", "config.providers", "metric.reporters"),
    *("sasl.enabled.mechanisms", "sasl.jaas.config", "sasl.mechanism.inter.broker.protocol"),
    *("ssl.cipher.suites", "ssl.client.auth", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm"),
}


async def test_a_broker_property_is_dynamic_if_it_is_in_kafka(wire: Wire) -> None:
    lines = (ROOT / "tests/config/data/alter-configs.tsv").read_text().splitlines()[1:]

    for name, value, *codes in (line.split("\t") for line in lines):
        outcomes = [await change(wire, BROKER, node, (name, SET, value), validate_only=True) for node in ("1", "")]
        expected = [42, 42] if name in REFUSED_HERE else [int(code) for code in codes]
        assert [outcome.error_code for outcome in outcomes] == expected, name


async def test_validating_changes_nothing(wire: Wire) -> None:
    await create(wire, "t")

    for value, code in (("8000", ErrorCode.NONE), ("soon", ErrorCode.INVALID_CONFIG)):
        response = await change(wire, TOPIC, "t", ("retention.ms", SET, value), validate_only=True)
        assert response.error_code == code
    response = await change(wire, BROKER, "1", ("log.roll.ms", SET, "5000"), validate_only=True)
    assert response.error_code == ErrorCode.NONE

    assert await own_values(wire, TOPIC, "t") == {}
    assert "log.roll.ms" not in await own_values(wire, BROKER, "1")


async def test_each_resource_succeeds_independently_and_is_named_once(wire: Wire) -> None:
    for name in ("a", "b"):
        await create(wire, name)

    def resource(name: str, value: str) -> AlterConfigsResource:
        return AlterConfigsResource(TOPIC, name, [AlterableConfig("retention.ms", SET, value)])

    wanted = [resource("a", "1000"), resource("b", "1000"), resource("b", "2000"), resource("missing", "1")]
    responses = (await wire.ask(IncrementalAlterConfigsRequest(wanted), 1)).responses

    assert [(response.resource_name, response.error_code) for response in responses] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


# Properties that take effect without a restart. Each is changed at all its levels.


CHANGED = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "compression.gzip.level": "5",
    "compression.lz4.level": "5",
    "compression.zstd.level": "5",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.25",
    "min.insync.replicas": "3",
    "preallocate": "true",
    "unclean.leader.election.enable": "true",
}
ANY_NUMBER = "12345"


@pytest.mark.parametrize(
    "row", some([row for row in TOPIC_PROPERTIES.values() if row.broker]), ids=lambda row: row.name
)
async def test_every_property_reaches_logs_that_are_in_use(broker: Broker, wire: Wire, row: TopicProperty) -> None:
    await create(wire, "t")
    log = broker.log_dir.logs["t", 0]
    before = log.config
    text = CHANGED.get(row.name, ANY_NUMBER)
    value = row.parse(text)
    expected = replace(before, **{attribute_name(row.name): frozenset(value) if isinstance(value, list) else value})
    assert row.broker is not None
    assert expected != before

    levels = [(TOPIC, "t", row.name), (BROKER, "1", row.broker.name), (BROKER, "", row.broker.name)]
    for kind, resource, name in levels[:1] if row.name == "min.insync.replicas" else levels:
        assert (await change(wire, kind, resource, (name, SET, text))).error_code == ErrorCode.NONE
        assert log.config == expected
        assert (await change(wire, kind, resource, (name, DELETE, None))).error_code == ErrorCode.NONE
        assert log.config == before


async def test_the_expiration_of_producer_ids_reaches_logs_that_are_in_use(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")

    await set_to(wire, BROKER, "1", producer_id_expiration_ms="5")

    assert broker.log_dir.logs["t", 0].config.producer_id_expiration_ms == 5


async def refuses_big_batches(wire: Wire) -> bool:
    return (await produce(wire, "t", BIG)).error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_the_value_of_the_topic_precedes_the_brokers_and_the_default(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    log = broker.log_dir.logs["t", 0]

    levels = ((BROKER, ""), (BROKER, "1"), (TOPIC, "t"))
    for number, (kind, resource) in enumerate(levels):
        name = "log.segment.bytes" if kind == BROKER else "segment.bytes"
        await change(wire, kind, resource, (name, SET, str(2_000_000 + number)))
        assert log.config.segment_bytes == 2_000_000 + number
    for number, (kind, resource) in reversed(list(enumerate(levels))):
        assert log.config.segment_bytes == 2_000_000 + number
        name = "log.segment.bytes" if kind == BROKER else "segment.bytes"
        await change(wire, kind, resource, (name, DELETE, None))
    assert log.config.segment_bytes == 1 << 30


@pytest.mark.parametrize(
    ("kind", "resource", "name"), [(TOPIC, "t", "max.message.bytes"), (BROKER, "1", "message.max.bytes")]
)
async def test_the_largest_batch(broker: Broker, wire: Wire, kind: int, resource: str, name: str) -> None:
    await create(wire, "t")
    assert not await refuses_big_batches(wire)

    await change(wire, kind, resource, (name, SET, "4000"))
    assert await refuses_big_batches(wire)

    await change(wire, kind, resource, (name, DELETE, None))
    assert not await refuses_big_batches(wire)


@pytest.mark.parametrize(
    ("kind", "resource", "name"), [(TOPIC, "t", "compression.type"), (BROKER, "", "compression.type")]
)
async def test_the_codec(broker: Broker, wire: Wire, kind: int, resource: str, name: str) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"x" * 500))

    await change(wire, kind, resource, (name, SET, "zstd"))
    await produce(wire, "t", batch(b"x" * 500))

    codecs = [header.attributes & 7 for _, header in batch_headers((await fetch(wire, "t")).records or b"")]
    assert codecs == [0, 4]


async def test_the_kind_of_timestamp(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")

    await set_to(wire, BROKER, "1", log_message_timestamp_type="LogAppendTime")
    by_broker = (await produce(wire, "t", batch(b"a"))).log_append_time_ms
    await set_to(wire, TOPIC, "t", message_timestamp_type="CreateTime")
    by_topic = (await produce(wire, "t", batch(b"a"))).log_append_time_ms

    assert (by_broker > NOW, by_topic) == (True, -1)


async def test_how_old_a_timestamp_may_be(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")

    await set_to(wire, BROKER, "", log_message_timestamp_before_max_ms="1000")

    assert (await produce(wire, "t", batch(b"a"))).error_code == ErrorCode.INVALID_TIMESTAMP


async def test_when_a_segment_rolls(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", BIG)

    await set_to(wire, TOPIC, "t", segment_bytes="6000")
    await produce(wire, "t", BIG)

    assert broker.log_dir.logs["t", 0].segments_count == 2


async def test_after_how_many_records_a_log_is_flushed(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    log = broker.log_dir.logs["t", 0]
    await produce(wire, "t", batch(b"a"))
    assert log.recovery_point == 0

    await set_to(wire, BROKER, "1", log_flush_interval_messages="1")
    await produce(wire, "t", batch(b"b"))

    assert log.recovery_point == 2


async def test_how_many_connections_there_may_be(broker: Broker, wire: Wire) -> None:
    await set_to(wire, BROKER, "1", max_connections_per_ip="1")

    async with Wire("127.0.0.1", broker.port) as second:
        assert await second.is_closed_by_peer()

    await set_to(wire, BROKER, "1", max_connections_per_ip_overrides="127.0.0.1:2")
    async with Wire("127.0.0.1", broker.port) as second:
        await create(second, "t")


async def test_a_waiting_client_is_accepted_when_the_limit_is_raised(broker: Broker, wire: Wire) -> None:
    await set_to(wire, BROKER, "", max_connections="1")

    async with Wire("127.0.0.1", broker.port) as second:
        await change(wire, BROKER, "", ("max.connections", DELETE, None))
        await create(second, "t")


async def test_properties_of_brokers_survive_a_restart(tmp_path: object) -> None:
    for starts in range(2):
        async with Broker({"log.dirs": str(tmp_path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
            if not starts:
                await create(wire, "t")
                await set_to(wire, BROKER, "1", message_max_bytes="4000", max_connections_per_ip="1")
            assert await refuses_big_batches(wire)
            async with Wire("127.0.0.1", broker.port) as second:
                assert await second.is_closed_by_peer()
