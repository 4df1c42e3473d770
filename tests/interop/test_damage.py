"""A damaged log directory, opened by Apache Kafka and by Odradek with the same result.

Kafka writes the directory and stops. Then each topic gets one kind of damage, and each server starts with a copy. The
test compares the records that clients read, and after a clean stop the files and their bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.test_one_directory import records_to_the_end
from tests.peers import apache, odradek
from tests.peers.clients import Incoming
from tests.peers.clients.confluent import TIMEOUT
from tests.peers.server import Server

pytestmark = pytest.mark.java

GARBAGE = bytes(range(1, 250)) * 5
COUNT = 150
VALUE = b"v" * 10_000
COMPARED = (".log", ".index", ".timeindex", ".txnindex")

Damage = Callable[[Path], object]
Served = tuple[tuple[int, int], list[Incoming]]


def segments(partition: Path) -> list[Path]:
    found = sorted(partition.glob("*.log"))
    assert len(found) == 2
    return found


def change(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def each(partition: Path, suffix: str, spoil: Callable[[Path], object]) -> None:
    found = list(partition.glob(f"*{suffix}"))
    assert found, suffix
    for path in found:
        spoil(path)


def leave_cleaned(partition: Path) -> None:
    """A compaction that was interrupted before all its segments were written."""
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(segments(partition)[0].with_suffix(suffix), partition / f"{0:020d}{suffix}.cleaned")


def leave_swap(partition: Path) -> None:
    """A compaction that was interrupted while it replaced the old segments."""
    first = segments(partition)[0]
    for suffix in (".log", ".index", ".timeindex"):
        first.with_suffix(suffix).rename(partition / f"{first.stem}{suffix}.swap")


def leave_deleted(partition: Path) -> None:
    first = segments(partition)[0]
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(first.with_suffix(suffix), partition / f"{first.stem}{suffix}.deleted")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    path.write_bytes(GARBAGE)


def contradict(path: Path) -> None:
    """Entries that cannot belong to the segment. (With a version other than 0 Kafka does not start at all.)"""
    path.write_bytes((bytes(2) + b"\xff" * 32) * 3)


DAMAGES: Mapping[str, Damage] = {
    "sound": lambda partition: None,
    "flipped-in-the-first-segment": lambda partition: change(segments(partition)[0], 300_000),
    "flipped-in-the-last-segment": lambda partition: change(segments(partition)[1], 200_000),
    "flipped-length": lambda partition: change(segments(partition)[1], 8),
    "garbage-at-the-end": lambda partition: append(segments(partition)[1], GARBAGE),
    "zeros-at-the-end": lambda partition: append(segments(partition)[1], bytes(5000)),
    "torn": lambda partition: segments(partition)[1].write_bytes(segments(partition)[1].read_bytes()[:-50]),
    "empty-last-segment": lambda partition: empty(segments(partition)[1]),
    "missing-first-segment": lambda partition: segments(partition)[0].unlink(),
    "missing-index": lambda partition: each(partition, ".index", Path.unlink),
    "empty-index": lambda partition: each(partition, ".index", empty),
    "garbage-index": lambda partition: each(partition, ".index", garble),
    "missing-timeindex": lambda partition: each(partition, ".timeindex", Path.unlink),
    "empty-timeindex": lambda partition: each(partition, ".timeindex", empty),
    "garbage-timeindex": lambda partition: each(partition, ".timeindex", garble),
    "missing-snapshot": lambda partition: each(partition, ".snapshot", Path.unlink),
    "empty-snapshot": lambda partition: each(partition, ".snapshot", empty),
    "garbage-snapshot": lambda partition: each(partition, ".snapshot", garble),
    "index-without-log": lambda partition: garble(partition / f"{99999:020d}.index"),
    "stray-file": lambda partition: garble(partition / "notes.txt"),
    "leftover-cleaned": leave_cleaned,
    "leftover-swap": leave_swap,
    "leftover-deleted": leave_deleted,
    "transactions-missing-txnindex": lambda partition: each(partition, ".txnindex", Path.unlink),
    "transactions-empty-txnindex": lambda partition: each(partition, ".txnindex", empty),
    "transactions-garbage-txnindex": lambda partition: each(partition, ".txnindex", contradict),
}


AFTER_A_CLEAN_STOP = [
    "sound", "missing-index", "missing-snapshot", "empty-snapshot", "garbage-snapshot", "index-without-log",
    "stray-file", "leftover-cleaned", "leftover-swap", "leftover-deleted", "transactions-garbage-txnindex",
]  # fmt: skip
"""Damage that both servers check. Otherwise Kafka trusts the marker of a clean stop: it uses a wrong index, and does
not start with a torn log."""


def fill(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    configs = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
    for created in admin.create_topics([NewTopic(topic, 1, 1, config=configs) for topic in DAMAGES]).values():
        created.result(TIMEOUT)
    settings = {"bootstrap.servers": server.bootstrap, "batch.size": 25_000, "linger.ms": 5}
    plain = Producer(settings | {"enable.idempotence": True})
    for topic in DAMAGES:
        if not topic.startswith("transactions"):
            for number in range(COUNT):
                plain.produce(topic, VALUE, key=b"key %d" % number, timestamp=1_700_000_000_000 + number)
            assert plain.flush(TIMEOUT) == 0
    transactional = Producer(settings | {"transactional.id": "t"})
    transactional.init_transactions(TIMEOUT)
    for number in range(6):
        transactional.begin_transaction()
        for topic in DAMAGES:
            if topic.startswith("transactions"):
                transactional.produce(topic, b"%d" % number)
        assert transactional.flush(TIMEOUT) == 0
        if number % 2:
            transactional.commit_transaction(TIMEOUT)
        else:
            transactional.abort_transaction(TIMEOUT)


def outcome(server: Server) -> dict[str, Served]:
    """Both ends of each topic, and all records of a consumer with read_committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "isolation.level": "read_committed", "enable.partition.eof": True,
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in DAMAGES])
    records: dict[str, list[Incoming]] = {topic: [] for topic in DAMAGES}
    for topic, record in records_to_the_end(consumer, len(DAMAGES)):
        records[topic].append(record)
    ends = {topic: consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT) for topic in DAMAGES}
    consumer.close()
    return {topic: (ends[topic], records[topic]) for topic in DAMAGES}


def files_left(log_dir: Path) -> dict[str, dict[str, bytes | None]]:
    return {
        topic: {
            path.name: path.read_bytes() if path.suffix in COMPARED else None
            for path in sorted((log_dir / f"{topic}-0").iterdir())
        }
        for topic in DAMAGES
    }


def make_of_it(server: Server) -> tuple[dict[str, Served], dict[str, dict[str, bytes | None]]]:
    """The records that a server serves, and the files after its stop."""
    server.start()
    try:
        found = outcome(server)
    finally:
        server.stop()
    return found, files_left(server.log_dir)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undamaged log directory of Kafka."""
    kafka = apache.prepare(tmp_path_factory.mktemp("written"))
    kafka.start()
    try:
        fill(kafka)
    finally:
        kafka.stop()
    return kafka.log_dir


@pytest.mark.parametrize("clean", [False, True], ids=["unclean", "clean"])
def test_both_servers_recover_the_same(clean: bool, written: Path, tmp_path: Path) -> None:
    """After an unclean stop without recovery points everything is checked, after a clean one what is necessary."""
    damaged = tmp_path / "damaged"
    shutil.copytree(written, damaged)
    for topic in AFTER_A_CLEAN_STOP if clean else DAMAGES:
        DAMAGES[topic](damaged / f"{topic}-0")
    if not clean:
        (damaged / ".kafka_cleanshutdown").unlink()
        (damaged / "recovery-point-offset-checkpoint").unlink()  # garbage keeps Kafka from starting
    kafka = apache.prepare(tmp_path / "kafka")
    ours = odradek.prepare(tmp_path / "ours")
    for server in (kafka, ours):
        shutil.rmtree(server.log_dir, ignore_errors=True)
        shutil.copytree(damaged, server.log_dir)
    try:
        served, left = make_of_it(kafka)
        served_by_us, left_by_us = make_of_it(ours)
    finally:
        for server in (kafka, ours):
            if hasattr(server, "process"):
                server.kill()
    ends = {topic: found[0] for topic, found in served.items()}
    assert ends["sound"] == (0, COUNT)
    if not clean:
        assert (
            ends["flipped-in-the-first-segment"][1] < ends["flipped-in-the-last-segment"][1] < ends["torn"][1] < COUNT
        )
        assert ends["missing-first-segment"][0] > 0
    different = {topic for topic in DAMAGES if served[topic] != served_by_us[topic]}
    assert {topic: (served[topic], served_by_us[topic]) for topic in different} == {}
    assert {topic: names for topic, names in left_by_us.items() if names != left[topic]} == {}
