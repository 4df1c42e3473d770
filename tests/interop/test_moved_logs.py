"""A partition's directory is moved from one kind of server to the other, which serves it as its own.

Only the topic id stays behind (`partition.metadata`): the topic exists on both sides, under the id that each gave it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers import apache, odradek
from tests.peers.clients import Incoming, Outgoing
from tests.peers.clients.aiokafka import Aiokafka
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

KINDS: Mapping[str, Callable[[Path], Server]] = {"odradek": odradek.prepare, "apache": apache.prepare}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TOPIC = "moved"
T0 = 1_700_000_000_000
PER_CODEC = 1000


def create_topic(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topic = NewTopic(TOPIC, 1, 1, config={"segment.bytes": "1048576", "index.interval.bytes": "1024"})
    admin.create_topics([topic])[TOPIC].result(30)


def fill(server: Server) -> int:
    """Some segments of records, a second apart, in every codec; their number."""
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
    """Give the partition's files of `source` to `destination`; both have stopped."""
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


def everything(server: Server, count: int) -> list[Incoming]:
    return Confluent().consume(server.bootstrap, TOPIC, count=count)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize(("source", "destination"), [("odradek", "apache"), ("apache", "odradek")])
def test_a_log_is_served_by_the_other_kind(source: str, destination: str, clean: bool, tmp_path: Path) -> None:
    """After a clean stop indexes are trusted; after an unclean one batches are checked and indexes made anew."""
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
