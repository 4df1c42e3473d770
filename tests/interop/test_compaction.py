"""The same directories compacted by Apache Kafka and by us: the same batches with the same records remain.

Apache Kafka fills a topic whose policy is still `delete`; its directory is copied, Kafka compacts its own, and we
compact the copy, twice: in the second round the delete horizon of tombstones and markers has passed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from subprocess import TimeoutExpired
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from odradek.broker.clock import SystemClock
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.compaction.cleaner import Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaner_process import CleanerProcess
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.records.record_iterator import iter_records
from tests.peers import apache
from tests.peers.server import Server

pytestmark = pytest.mark.java

TOPIC = "compacted"
CONFIG = {"segment.bytes": "1048576", "delete.retention.ms": "1", "index.interval.bytes": "1024"}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TRANSACTIONAL = ["none", "zstd"]  # each costs a second until it has its producer id
KEYS = 400


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Server]:
    server = apache.prepare(tmp_path / "apache", {"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"})
    try:
        server.start()
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIG)])[TOPIC].result(30)
        yield server
    finally:
        server.kill()


@pytest.fixture
def worker() -> Iterator[CleanerProcess]:
    made = CleanerProcess()
    yield made
    made.close()


class Batch(NamedTuple):
    """The comparable part of a batch. Base timestamp and compression may differ."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    max_timestamp: int
    producer: tuple[int, int, int]
    records: list[tuple[Any, ...]]


def batches(log: Log) -> list[Batch]:
    found = []
    for segment in log.segments:
        for stored, header in segment.log.headers():
            records = [tuple(record) for record in iter_records(segment.log.read(stored), 0, header)]
            producer = (header.producer_id, header.producer_epoch, header.base_sequence)
            found.append(
                Batch(
                    header.base_offset,
                    header.last_offset,
                    header.partition_leader_epoch,
                    header.attributes,
                    header.max_timestamp,
                    producer,
                    records,
                )
            )
    return found


def fill(server: Server, seed: int) -> None:
    """A few segments: plain and transactional producers, all codecs, headers, tombstones, keyless records."""
    chance = Random(seed)
    early = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True})
    early.produce(TOPIC, key=b"key 0", value=b"soon superseded, and all that this producer writes")
    early.flush()
    for number, codec in enumerate(CODECS):
        plain = Producer(
            {
                "bootstrap.servers": server.bootstrap,
                "compression.type": codec,
                "enable.idempotence": number % 2 == 0,
                "linger.ms": 20,
            }
        )
        send(plain, chance, 600, keyless=True)
        plain.flush()
        if codec not in TRANSACTIONAL:
            continue
        transactional = Producer(
            {
                "bootstrap.servers": server.bootstrap,
                "compression.type": codec,
                "transactional.id": f"{codec}-{seed}",
                "linger.ms": 20,
            }
        )
        transactional.init_transactions(30)
        for commit in (True, False, True):
            transactional.begin_transaction()
            send(transactional, chance, 100)
            if commit:
                transactional.commit_transaction(30)
            else:
                transactional.flush()
                transactional.abort_transaction(30)


def send(producer: Producer, chance: Random, count: int, *, keyless: bool = False) -> None:
    for _ in range(count):
        key = None if keyless and chance.random() < 0.02 else b"key %d" % chance.randrange(KEYS)
        value = None if key is not None and chance.random() < 0.1 else chance.randbytes(chance.randrange(1500))
        headers = [("header", b"value"), ("null", None)] if chance.random() < 0.3 else []
        producer.produce(TOPIC, key=key, value=value, headers=headers)
        producer.poll(0)


def set_policy(server: Server, policy: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    entries = [
        ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def cleaned_offset(log_dir: Path) -> int:
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    rows = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return max((int(row.split()[2]) for row in rows if row.startswith(f"{TOPIC} 0 ")), default=0)


def compact_by_kafka(server: Server, before: int) -> None:
    set_policy(server, "compact")
    while cleaned_offset(server.log_dir) <= before:
        with pytest.raises(TimeoutExpired):  # the server keeps running; this is a pause between two checks
            server.process.wait(0.05)
    set_policy(server, "delete")


def opened(path: Path) -> tuple[LogDir, Log]:
    config = LogConfig(
        cleanup_policy=frozenset({"compact"}),
        segment_bytes=1 << 20,
        delete_retention_ms=1,
        index_interval_bytes=1024,
        min_cleanable_dirty_ratio=0.01,
        file_delete_delay_ms=0,
    )
    log_dir = LogDir(path, clock=SystemClock(), randomness=SystemRandomness())
    log_dir.open(lambda _: config, node_id=1)
    log = log_dir.logs[TOPIC, 0]
    log.advance_high_watermark(log.log_end_offset)
    return log_dir, log


def compact_by_us(path: Path, worker: CleanerProcess) -> list[Batch]:
    log_dir, log = opened(path)
    assert Cleaner([log_dir], SystemClock()).run_once(worker.clean, CleanerSettings())
    left = batches(log)
    log_dir.close()
    return left


def batches_in(path: Path, copy: Path) -> list[Batch]:
    shutil.copytree(path, copy)
    log_dir, log = opened(copy)
    found = batches(log)
    log_dir.close()
    return found


def test_both_compactions_keep_the_same_records(kafka: Server, worker: CleanerProcess, tmp_path: Path) -> None:
    before = 0
    for turn in range(2):
        fill(kafka, turn)
        copy = tmp_path / f"copy {turn}"
        shutil.copytree(kafka.log_dir, copy)
        compact_by_kafka(kafka, before)
        theirs = batches_in(kafka.log_dir, tmp_path / f"theirs {turn}")
        ours = compact_by_us(copy, worker)
        assert ours == theirs
        assert cleaned_offset(copy) == cleaned_offset(kafka.log_dir) > before
        before = cleaned_offset(copy)
        assert any(batch.attributes & 0x40 for batch in ours)  # tombstones with a delete horizon
        assert any(not batch.records for batch in ours)
