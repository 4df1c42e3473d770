"""Kafka's own tool reads every file that the broker writes, and finds no error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers import java
from tests.peers.clients import Outgoing
from tests.peers.clients.aiokafka import Aiokafka
from tests.peers.clients.confluent import Confluent
from tests.peers.clients.kafka_python import KafkaPython
from tests.peers.server import Server

pytestmark = pytest.mark.java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
T0 = 1_700_000_000_000
TOPICS = ("many-codecs", "idempotent", "stamped")

# All lines of DumpLogSegments for a correct file. It has a dozen forms of errors; none looks like these.
SOUND = re.compile(
    r"""Dumping\ \S+
    | (Log|Snapshot)\ starting\ offset:\ \d+
    | baseOffset:\ \d+\ lastOffset:\ \d+\ .*\ isvalid:\ true
    | \|\ offset:\ \d+\ (CreateTime|LogAppendTime):\ .*
    | \S+\.(index|timeindex|txnindex)\ (passed\ sanity\ check|is\ empty)\.
    | (offset|timestamp):\ \d+\ (position|offset):\ \d+
    | producerId:\ \d+\ producerEpoch:\ \d+\ .*
    """,
    re.VERBOSE,
)


def dump(files: list[Path], *options: str) -> str:
    """The output of DumpLogSegments for all the files; each line is checked to be no error."""
    done = java.run(java.DUMP_LOG_SEGMENTS, *options, "--files", ",".join(map(str, files)))
    complaints = [line for line in done.stdout.splitlines() if not SOUND.fullmatch(line)]
    assert not complaints, "\n".join(complaints[:20])
    assert "WARN" not in done.stderr, done.stderr
    return done.stdout


def check_files(log_dir: Path, records: dict[str, int], *, stopped: bool) -> None:
    """Check that every record is in the logs, and that every index agrees with its log.

    The index of an active segment has its full length, mostly zeros, until the segment is rolled or closed;
    Kafka's sanity check, made for closed ones, refuses it.
    """
    partitions = [log_dir / f"{topic}-0" for topic in TOPICS]
    logs, indexes, snapshots = (
        [file for partition in partitions for suffix in suffixes for file in sorted(partition.glob(f"*.{suffix}"))]
        for suffixes in (("log",), ("index", "timeindex"), ("snapshot",))
    )
    assert len(logs) > 6, "several segments"
    printed = dump(logs, "--deep-iteration")
    for topic, count in records.items():
        parts = [part for part in printed.split("Dumping ") if f"/{topic}-0/" in part.split("\n")[0]]
        offsets = [int(offset) for part in parts for offset in re.findall(r"^\| offset: (\d+)", part, re.MULTILINE)]
        assert offsets == list(range(count)), topic
    if stopped:
        dump(indexes, "--index-sanity-check")
    assert len(dump([*indexes, *snapshots]).splitlines()) > len(indexes + snapshots), "entries were compared"


def fill(bootstrap: str) -> dict[str, int]:
    """Write some thousand records to each of `TOPICS` by several clients; return the counts."""
    records = [Outgoing(b"key", bytes([32 + i % 90]) * 900, (("h", b"v"),), T0 + i * 10) for i in range(1500)]
    for codec in CODECS:
        Aiokafka().produce(bootstrap, "many-codecs", records[:200], codec=codec)
        KafkaPython().produce(bootstrap, "many-codecs", records[:200], codec=codec)
        Confluent().produce(bootstrap, "many-codecs", records, codec=codec)
    for _ in range(3):
        Confluent().produce(bootstrap, "idempotent", records, idempotent=True)
        Confluent().produce(bootstrap, "stamped", records)
    return {"many-codecs": 5 * 1900, "idempotent": 3 * 1500, "stamped": 3 * 1500}


def test_kafkas_tool_accepts_every_file_while_running_after_a_stop_and_after_a_recovery(
    start_server: Callable[..., Server],
) -> None:
    server = start_server({"log.index.interval.bytes": "1024"})
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    created = admin.create_topics(
        [
            NewTopic(topic, 1, 1, config={"segment.bytes": "1048576"} | more)
            for topic, more in zip(TOPICS, ({}, {}, {"message.timestamp.type": "LogAppendTime"}), strict=True)
        ]
    )
    for future in created.values():
        future.result(30)
    records = fill(server.bootstrap)
    check_files(server.log_dir, records, stopped=False)

    server.stop()
    check_files(server.log_dir, records, stopped=True)

    server.start()
    Confluent().produce(server.bootstrap, "idempotent", [Outgoing(None, b"last")] * 10, idempotent=True)
    server.kill()
    server.start()
    server.stop()
    check_files(server.log_dir, records | {"idempotent": records["idempotent"] + 10}, stopped=True)
