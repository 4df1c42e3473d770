"""The metrics: the series of the dashboards, with the same counts as in Apache Kafka."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import write_crc
from tests.handlers.requests import batch, fetch, new_producer_id, produce
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.series import Samples, get, read, value
from tests.peers.server import Server
from tests.wire import Wire

DASHBOARD = Path(__file__).parents[2] / "docker" / "grafana" / "dashboards" / "odradek.json"
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
EXPECTED = Path(__file__).parent / "data" / "series.txt"

TOPIC = "kafka_server_brokertopicmetrics_"
GROUP = "kafka_consumergroup_group"
ABSENT = re.compile(
    "kafka_server_fetcherlagmetrics_consumerlag|odradek_tls_|odradek_metadata_store_(size|quota)_bytes"
    "|kafka_server_(quota|produce|fetch|request|controllermutation)_"
)
"""The series of followers, of TLS, of etcd and of clients with a quota: the broker under test has none of them."""
ADDED_BY_PROMETHEUS = {"job", "instance"}
ERRORS = "kafka_network_requestmetrics_errors_total"


@pytest.fixture
def endpoint(server: Server) -> str:
    if server.metrics_port is None:
        pytest.skip("Apache Kafka needs a Java agent to be scraped")
    return f"http://{server.host}:{server.metrics_port}"


def expressions_of_dashboard() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def series_on_page() -> set[str]:
    """The names in the first column of docs/metrics.md; a name with a leading _ is a suffix of the first in its row."""
    found = set()
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| `\w", line):
            first, *endings = re.findall(r"`(\w+)`", line.split("|")[1])
            found |= {first, *(first + ending for ending in endings)}
    return found


@pytest.fixture
def lagging(endpoint: str, server: Server, topic: str) -> Samples:
    """All series of a broker with a group whose member has read one record of three."""
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v")] * 3)
    settings = {"bootstrap.servers": server.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        first = consumer.poll(30)
        assert first is not None
        consumer.commit(first, asynchronous=False)
        for _ in range(100):  # the lag in seconds is updated every few seconds
            samples = read(server)
            if any(labels["group"] == topic for labels, _ in samples.get(f"{GROUP}_lag_seconds", ())):
                break
            consumer.poll(0.2)
        return samples
    finally:
        consumer.close()


def test_every_series_of_the_dashboard_is_exported_with_its_labels(lagging: Samples) -> None:
    for expression in expressions_of_dashboard():
        needed = set(re.findall(r"(\w+)!?=~?\"", expression))
        for grouped in re.findall(r" by \(([^)]*)\)", expression):
            needed |= set(re.split(r",\s*", grouped))
        for name in re.findall(r"\b(?:kafka|process)_\w+", expression):
            labels = [own.keys() | ADDED_BY_PROMETHEUS for own, _ in lagging[name]]
            assert any(needed <= own for own in labels), expression


def test_the_page_of_metrics_lists_every_series_of_a_scrape_and_no_other(lagging: Samples) -> None:
    assert {name for name in series_on_page() if not ABSENT.match(name)} == set(lagging)


def test_the_series_of_common_dashboards_and_alerts_are_exported_with_their_labels(
    endpoint: str, server: Server, topic: str
) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v")])
    Confluent().consume(server.bootstrap, topic, count=1)
    exported = read(server)
    for line in EXPECTED.read_text().splitlines():
        name, *labels = line.split()
        if not name.startswith("#"):
            assert any(set(labels) <= own.keys() for own, _ in exported.get(name, ())), line


def test_traffic_is_counted_by_topic(endpoint: str, server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v" * 100)] * 50)
    Confluent().consume(server.bootstrap, topic, count=50)
    samples = read(server)
    assert value(samples, "kafka_server_brokertopicmetrics_messagesin_total", topic=topic) == 50
    assert value(samples, "kafka_server_brokertopicmetrics_bytesin_total", topic=topic) > 5_000
    assert value(samples, "kafka_server_brokertopicmetrics_bytesout_total", topic=topic) > 5_000
    assert value(samples, "kafka_log_log_logendoffset", topic=topic, partition="0") == 50
    assert value(samples, "kafka_log_log_size", topic=topic, partition="0") > 5_000
    assert value(samples, "kafka_log_log_numlogsegments", topic=topic, partition="0") == 1
    assert value(samples, "kafka_controller_kafkacontroller_activecontrollercount") == 1


@pytest.mark.parametrize("path", ["healthz", "readyz"])
def test_a_serving_broker_is_healthy_and_ready(endpoint: str, path: str) -> None:
    assert get(f"{endpoint}/{path}")[0] == 200


def test_a_consumer_group_has_members_offsets_and_lag(endpoint: str, server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v")] * 5)
    settings = {"bootstrap.servers": server.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        [first, second] = consumer.consume(2, timeout=30)
        assert (first.error(), second.error()) == (None, None)
        consumer.commit(second, asynchronous=False)
        samples = read(server)
    finally:
        consumer.close()

    where = {"consumergroup": topic, "topic": topic, "partition": "0"}
    assert value(samples, "kafka_consumergroup_members", consumergroup=topic) == 1
    assert value(samples, "kafka_consumergroup_current_offset", **where) == 2
    assert value(samples, "kafka_consumergroup_lag", **where) == 3
    assert value(samples, "kafka_consumergroup_lag_sum", consumergroup=topic, topic=topic) == 3
    assert value(samples, "kafka_coordinator_group_groupmetadatamanager_numgroupsstable") >= 1
    assert value(samples, "kafka_coordinator_group_groupmetadatamanager_numoffsets") >= 1


def damaged(records: bytes) -> bytes:
    return records[:-1] + bytes([records[-1] ^ 1])


def poked(records: bytes, layout: str, position: int, number: int) -> bytes:
    """`records` with one field of the header changed and a correct checksum."""
    data = bytearray(records)
    struct.pack_into(layout, data, position, number)
    write_crc(data, 0, len(data))
    return bytes(data)


def keyless(count: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(1_700_000_000_000, None, b"v")
    return bytes(builder.build())


async def test_refused_records_are_counted_by_cause(server: Server, make_topic: Callable[..., str]) -> None:
    topic, compacted = make_topic(), make_topic(cleanup_policy="compact")
    small, gzip = make_topic(max_message_bytes=200), make_topic(compression_type="gzip")
    records, large = batch(b"a", b"b"), batch(*[b"v" * 100] * 10)
    before = read(server)

    async with Wire(server.host, server.port) as wire:
        producer_id = await new_producer_id(wire)
        sequences = [
            batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=number) for number in (-1, 0, 7)
        ]
        refused = [
            await produce(wire, topic, damaged(records)),
            await produce(wire, topic, poked(records, ">i", 57, 5)),
            await produce(wire, topic, records, partition=9),
            await produce(wire, topic, records + records),
            *[await produce(wire, topic, each) for each in sequences],
            await produce(wire, compacted, keyless(3)),
            await produce(wire, small, large),
            await produce(wire, gzip, records),
            await fetch(wire, topic, offset=100),
            await fetch(wire, topic, partition=9),
        ]

    assert [row.error_code for row in refused] == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        ErrorCode.NONE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NONE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    after = read(server)
    of_topics = {
        ("totalproducerequests", topic): 5,  # neither a partition that is not there, nor two batches, reach a log
        ("failedproducerequests", topic): 3,
        ("failedproducerequests", compacted): 1,
        ("failedproducerequests", small): 0,
        ("bytesrejected", small): len(large),
        ("producemessageconversions", gzip): 2,
        ("totalfetchrequests", topic): 1,
        ("failedfetchrequests", topic): 0,
    }
    assert {(name, of): value(after, f"{TOPIC}{name}_total", topic=of) for name, of in of_topics} == of_topics
    assert moved(before, after) == {
        "invalidmessagecrcrecords": 1,
        "invalidoffsetorsequencerecords": 2,
        "nokeycompactedtopicrecords": 3,
        "invalidmagicnumberrecords": 0,
    }
    assert errors(before, after, "Produce") == {
        "CORRUPT_MESSAGE": 1,
        "INVALID_RECORD": 4,
        "MESSAGE_TOO_LARGE": 1,
        "NONE": 2,
        "OUT_OF_ORDER_SEQUENCE_NUMBER": 1,
        "UNKNOWN_TOPIC_OR_PARTITION": 1,
    }
    assert errors(before, after, "Fetch") == {"NONE": 2, "OFFSET_OUT_OF_RANGE": 1, "UNKNOWN_TOPIC_OR_PARTITION": 1}


def moved(before: Samples, after: Samples) -> dict[str, float]:
    """The increase of the series of refused records."""
    causes = ("invalidmessagecrc", "invalidoffsetorsequence", "nokeycompactedtopic", "invalidmagicnumber")
    names = {f"{cause}records": f"{TOPIC}{cause}records_total" for cause in causes}
    return {short: value(after, name) - value(before, name) for short, name in names.items()}


def errors(before: Samples, after: Samples, request: str) -> dict[str, float]:
    """The errors of an API that were counted in between, including NONE."""
    names = {labels["error"] for labels, _ in after[ERRORS] if labels["request"] == request}
    counts = {
        name: value(after, ERRORS, request=request, error=name) - value(before, ERRORS, request=request, error=name)
        for name in names
    }
    return {name: count for name, count in counts.items() if count}
