"""A partition's directory is moved from one kind of server to the other, which serves it.

Only the topic id is not moved (`partition.metadata`): the topic exists on both sides, with different ids.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from subprocess import TimeoutExpired

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.storage import open_log_dir
from tests.interop.test_one_directory import read
from tests.peers import apache, java, odradek
from tests.peers.clients import Incoming, Outgoing
from tests.peers.clients.aiokafka import Aiokafka
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server

pytestmark = pytest.mark.java

KINDS: Mapping[str, Callable[[Path], Server]] = {"odradek": odradek.prepare, "apache": apache.prepare}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TOPIC = "moved"
T0 = 1_700_000_000_000
PER_CODEC = 1000
KEYS = 300


def create_topic(server: Server, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    config = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
    topic = NewTopic(TOPIC, 1, 1, config=config | {name.replace("_", "."): value for name, value in configs.items()})
    admin.create_topics([topic])[TOPIC].result(30)


def fill(server: Server) -> int:
    """Write some segments of records, one each second, in every codec; return their number."""
    random = Random(0)
    for number, codec in enumerate(CODECS):
        first = number * PER_CODEC
        records = [
            Outgoing(
                None if i % 5 == 0 else f"key-{i}".encode(),
                None if i % 13 == 0 else random.randbytes(700),
                (("header", b"value"), ("null", None)) if i % 3 == 0 else (),
                T0 + i * 1000,
            )
            for i in range(first, first + PER_CODEC)
        ]
        Confluent().produce(server.bootstrap, TOPIC, records, codec=codec, idempotent=True)
    return len(CODECS) * PER_CODEC


def move(source: Server, destination: Server, *, clean: bool) -> None:
    """Move the partition's files from `source` to `destination`; both are stopped."""
    theirs, ours = source.log_dir / f"{TOPIC}-0", destination.log_dir / f"{TOPIC}-0"
    for path in ours.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in theirs.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, ours)
    assert len(list(ours.glob("*.log"))) > 1, "several segments"
    if not clean:
        (destination.log_dir / ".kafka_cleanshutdown").unlink()


def fill_by_key(server: Server, first: int) -> None:
    """Write some segments of records with few keys, from number `first` on: every codec, tombstones, headers."""
    random = Random(first)
    for number, codec in enumerate(CODECS):
        records = [
            Outgoing(
                b"key %d" % random.randrange(KEYS),
                None if i % 9 == 0 else random.randbytes(random.randrange(1000)).hex().encode(),
                (("header", b"value"), ("null", None)) if i % 3 == 0 else (),
                T0 + i * 1000,
            )
            for i in range(first + number * PER_CODEC, first + (number + 1) * PER_CODEC)
        ]
        Confluent().produce(server.bootstrap, TOPIC, records, codec=codec, idempotent=number % 2 == 0)


def wait_until_compacted(server: Server) -> None:
    """Wait until all segments except the active one are compacted."""
    active = max(int(path.stem) for path in (server.log_dir / f"{TOPIC}-0").glob("*.log"))
    checkpoint = server.log_dir / "cleaner-offset-checkpoint"
    while not checkpoint.exists() or f"{TOPIC} 0 {active}\n" not in checkpoint.read_text():
        with pytest.raises(TimeoutExpired):  # the server keeps running; this is a pause between two checks
            server.process.wait(0.05)


def last_of_each_key(records: list[Incoming]) -> dict[bytes | None, Incoming]:
    return {record.key: record for record in records}


def by_the_console_consumer(server: Server, count: int) -> list[str]:
    prints = ("timestamp", "offset", "headers", "key", "value")
    return java.run(
        java.CONSOLE_CONSUMER,
        *("--bootstrap-server", server.bootstrap, "--topic", TOPIC, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", str(count), "--timeout-ms", "20000", "--formatter-property", "null.literal=NULL"),
        *(argument for name in prints for argument in ("--formatter-property", f"print.{name}=true")),
    ).stdout.splitlines()


def printed(record: Incoming) -> str:
    headers = ",".join(f"{name}:{'NULL' if value is None else value.decode()}" for name, value in record.headers)
    key, value = (b"NULL" if each is None else each for each in (record.key, record.value))
    place = f"CreateTime:{record.timestamp}\tOffset:{record.offset}\t{headers or 'NO_HEADERS'}"
    return f"{place}\t{key.decode()}\t{value.decode()}"


def everything(server: Server, count: int) -> list[Incoming]:
    return Confluent().consume(server.bootstrap, TOPIC, count=count)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize(("source", "destination"), [("odradek", "apache"), ("apache", "odradek")])
def test_a_moved_log_is_served_by_the_other_kind(source: str, destination: str, clean: bool, tmp_path: Path) -> None:
    """After a clean stop indexes are trusted; after an unclean one batches are checked and indexes are rebuilt."""
    servers = {kind: KINDS[kind](tmp_path / kind) for kind in (source, destination)}
    try:
        for server in servers.values():
            server.start()
            create_topic(server)
        servers[destination].stop()
        count = fill(servers[source])
        written = everything(servers[source], count)
        servers[source].stop()

        move(servers[source], servers[destination], clean=clean)
        bootstrap = servers[destination].start().bootstrap
        assert everything(servers[destination], count) == written
        assert Aiokafka().offsets(bootstrap, TOPIC) == (0, count)
        times = [T0 + second * 1000 + 1 for second in (-1, 0, 999, 2500, count - 2, count - 1)]
        found = [Confluent().offset_for_time(bootstrap, TOPIC, time) for time in times]
        assert found == [0, 1, 1000, 2501, count - 1, None]

        assert Confluent().produce(bootstrap, TOPIC, [Outgoing(None, b"goes on")], idempotent=True) == [count]
        assert everything(servers[destination], count + 1)[-1].value == b"goes on"
        assert "orrupt" not in servers[destination].printed()
    finally:
        for server in servers.values():
            server.kill()


def test_a_log_that_we_compacted_is_served_and_compacted_further_by_kafka(tmp_path: Path) -> None:
    """Compacted twice by us: merged segments, batches with gaps, tombstones with a delete horizon."""
    often = {"log.cleaner.backoff.ms": "100"}
    ours, kafka = odradek.prepare(tmp_path / "ours", often), apache.prepare(tmp_path / "kafka", often)
    policy = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
    try:
        ours.start()
        create_topic(ours, **policy)
        for turn in range(2):
            fill_by_key(ours, turn * len(CODECS) * PER_CODEC)
            wait_until_compacted(ours)
        left = read(ours.bootstrap, TOPIC, "read_uncommitted")
        kafka.start()
        create_topic(kafka, **policy)
        kafka.stop()
        ours.stop()
        assert_compacted(ours)

        move(ours, kafka, clean=True)
        kafka.start()
        assert read(kafka.bootstrap, TOPIC, "read_uncommitted") == left
        assert by_the_console_consumer(kafka, len(left)) == [printed(record) for record in left]

        fill_by_key(kafka, 2 * len(CODECS) * PER_CODEC)
        expected = last_of_each_key(read(kafka.bootstrap, TOPIC, "read_uncommitted"))
        wait_until_compacted(kafka)
        again = read(kafka.bootstrap, TOPIC, "read_uncommitted")
        assert len(again) < len(left) + len(CODECS) * PER_CODEC
        assert last_of_each_key(again) == expected
        assert "orrupt" not in kafka.printed()
    finally:
        for server in (ours, kafka):
            if hasattr(server, "process"):
                server.kill()


def assert_compacted(server: Server) -> None:
    """Check that the log has the features of the test."""
    rolled = server.printed().count("rolled ")
    with open_log_dir(server.log_dir) as log_dir:
        segments = log_dir.partitions[TOPIC, 0].segments
        headers = [header for segment in segments for _, header in segment.log.headers()]
    assert len(segments) < rolled
    assert any(header.delete_horizon_ms is not None for header in headers)
    assert any(header.records_count < header.last_offset_delta + 1 for header in headers)
