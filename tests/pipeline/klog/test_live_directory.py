"""`format("klog")` on the directory of a running broker that appends, compacts and deletes.

Record number n has offset n and the key n mod 50, so the result of reading the first E offsets is known: with
compaction at least the latest record of each key, with retention all records from some offset on. All other records
must equal those that were sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.pipeline.klog.segment_reader import SegmentGoneError
from tests.peers import odradek
from tests.peers.server import Server
from tests.pipeline.klog.readings import Reading

pytestmark = pytest.mark.interop

KEYS = 50
A_ROUND = 200  # records, of 1 KiB: a fifth of a segment
READINGS = 12
MAX_ROUNDS = 1000
_SEGMENT_BYTES = str(1 << 20)
_EVERY_100_MS = {
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}
TOPICS = {
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "shortened": {"cleanup.policy": "delete", "retention.bytes": _SEGMENT_BYTES},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = odradek.prepare(tmp_path, _EVERY_100_MS).start()
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    configs = {name: config | {"segment.bytes": _SEGMENT_BYTES} for name, config in TOPICS.items()}
    for created in admin.create_topics([NewTopic(name, 1, 1, config=configs[name]) for name in TOPICS]).values():
        created.result(30)
    yield server
    server.stop()


def value(number: int) -> bytes:
    return b"%08d" % number * 128


@pytest.mark.parametrize("topic", TOPICS)
def test_a_live_directory_is_read_completely_up_to_its_checkpoint(server: Server, topic: str) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    ends = {0}
    smaller = 0  # reads of a log after compaction or retention
    rounds = 0
    while len(ends) < READINGS or smaller < READINGS // 2:
        sent = rounds * A_ROUND
        rounds += 1
        assert rounds < MAX_ROUNDS, (ends, smaller)
        for number in range(sent, sent + A_ROUND):
            producer.produce(topic, value(number), b"%d" % (number % KEYS))
        producer.flush(30)
        try:
            reading = Reading(server.log_dir, subscribe=topic)
            rows = reading.rows()
        except (SegmentGoneError, FileNotFoundError):
            continue  # retention or compaction ran between planning and reading, which is an error
        if not reading.tasks:  # retention passed the last checkpoint of the high watermark
            assert topic == "shortened" or ends == {0}
            continue
        offsets = [row["offset"] for row in rows]
        assert offsets == sorted(set(offsets))
        assert all(row["value"] == value(row["offset"]) for row in rows)
        end = max(piece.end_offset for piece in reading.pieces)
        assert max(ends) <= end <= sent + A_ROUND
        ends.add(end)
        smaller += len(rows) < end
        if topic == "compacted":
            assert set(offsets) >= set(range(max(end - KEYS, 0), end))
        else:
            assert offsets == list(range(end - len(offsets), end))
