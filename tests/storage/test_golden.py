"""A log directory of Apache Kafka 4.3.1: we read what its clients read, and write what it wrote."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import iter_records
from tests.storage.logs import CLUSTER, make_log_dir, names_in, read_all

HERE = Path(__file__).parent
CONFIG = LogConfig(retention_ms=-1, producer_id_expiration_ms=1 << 62)

TOPICS = (
    "codec-none",
    "codec-gzip",
    "codec-snappy",
    "codec-lz4",
    "codec-zstd",
    "rolled",
    "logappend",
    "compacted",
    "idempotent",
    "transactional",
)
CLEAN, UNCLEAN = "clean", "unclean"


@pytest.fixture(params=[CLEAN, UNCLEAN])
def golden(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LogDir]:
    """A copy of the directory, opened as after a clean and as after an unclean stop."""
    path = tmp_path / "logs"
    shutil.copytree(HERE / "golden_dirs", path)
    if request.param == CLEAN:
        (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    log_dir = make_log_dir(path)
    log_dir.open(lambda _: CONFIG, node_id=1, cluster_id=CLUSTER)
    yield log_dir
    log_dir.close()


@cache
def expected(name: str) -> list[dict[str, Any]]:
    path = HERE / "golden_expected" / f"{name}.jsonl"
    text = path.read_text() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def rows(log: Log, end_offset: int, aborted_are_skipped: bool = False) -> Iterator[dict[str, Any]]:
    """The log as a consumer sees it, in the form of the expected files; chunks are small so that they cut batches."""
    offset = log.log_start_offset
    while offset < end_offset:
        with log.read(offset, 5000, end_offset) as slice_:
            aborted = log.aborted_transactions_of(offset, slice_) if aborted_are_skipped else []
            data = slice_.read()
        skipped: set[int] = set()
        for position, header in batch_headers(data):
            offset = header.next_offset
            skipped |= {pid for pid, first in aborted if first <= header.base_offset and header.is_transactional}
            if header.is_control:
                skipped.discard(header.producer_id)
                aborted = [(pid, first) for pid, first in aborted if first > header.base_offset]
            elif not (header.is_transactional and header.producer_id in skipped):
                for record in iter_records(data, position, header):
                    yield row(record, int(header.timestamp_type) + 1)


def row(record: Any, timestamp_type: int) -> dict[str, Any]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else base64.b64encode(value).decode()

    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": timestamp_type,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[key, text(value)] for key, value in record.headers],
    }


@pytest.mark.parametrize("topic", TOPICS)
def test_every_record_is_read_as_kafkas_consumer_read_it(golden: LogDir, topic: str) -> None:
    log = golden.logs[topic, 0]
    assert list(rows(log, log.log_end_offset)) == expected(f"{topic}.records")


def test_read_committed_skips_aborted_records(golden: LogDir) -> None:
    log = golden.logs["transactional", 0]
    assert log.last_stable_offset == log.log_end_offset == 66
    assert list(rows(log, log.last_stable_offset, aborted_are_skipped=True)) == expected("transactional.read_committed")
    assert log.aborted_transactions(0, 66) == [(1, 11), (1, 44)]
    assert log.aborted_transactions(22, 44) == []
    assert log.aborted_transactions(20, 21) == [(1, 11)]


def test_topic_ids_and_end_offsets(golden: LogDir) -> None:
    ends = {topic: log.log_end_offset for (topic, _), log in golden.logs.items() if not topic.startswith("__")}
    assert ends == {
        "codec-gzip": 200, "codec-lz4": 200, "codec-none": 200, "codec-snappy": 200, "codec-zstd": 200,
        "compacted": 3101, "idempotent": 100, "logappend": 100, "rolled": 20000, "transactional": 66,
    }  # fmt: skip
    assert all(log.high_watermark == log.log_end_offset for log in golden.logs.values())
    assert golden.logs["transactional", 0].topic_id.hex() == "d9e50781 1a9f4ad5 b2f83a52 88df01e3".replace(" ", "")


def test_producers_are_those_that_kafka_stored(golden: LogDir) -> None:
    (producer,) = golden.logs["idempotent", 0].producers
    assert (producer.epoch, producer.last_sequence, producer.last_offset) == (0, 99, 99)
    (producer,) = golden.logs["transactional", 0].producers
    assert (producer.last_sequence, producer.last_offset, producer.coordinator_epoch) == (59, 64, 0)
    assert producer.last_timestamp == 1795242209291
    assert producer.transaction_first_offset == -1


def test_a_closed_directory_holds_the_bytes_that_kafka_left(golden: LogDir) -> None:
    """After an unclean stop all of the indexes, snapshots and transaction indexes of the open segments were remade."""
    golden.close()
    for source in sorted((HERE / "golden_dirs").iterdir()):
        if source.is_dir():
            directory = golden.path / source.name
            assert names_in(directory) == names_in(source)
            for path in source.iterdir():
                assert (directory / path.name).read_bytes() == path.read_bytes(), path


def test_rebuilt_indexes_equal_kafkas(golden: LogDir) -> None:
    for log in golden.logs.values():
        for path in log.directory.glob("*.*index"):
            path.unlink()
    golden.close(clean=False)
    again = make_log_dir(golden.path)
    again.open(lambda _: CONFIG, node_id=1, cluster_id=CLUSTER)
    for log in again.logs.values():
        list(rows(log, log.log_end_offset))
        log.max_timestamp_offset()
    again.close()
    for source in (HERE / "golden_dirs").glob("*/*index"):
        assert (golden.path / source.parent.name / source.name).read_bytes() == source.read_bytes(), source


@pytest.mark.parametrize("topic", ["rolled", "codec-gzip", "logappend", "compacted"])
def test_offsets_by_timestamp(golden: LogDir, topic: str) -> None:
    log = golden.logs[topic, 0]
    records = read_all(log)
    times = sorted({record.timestamp for record in records})
    wanted = {times[0] - 1, times[0], times[len(times) // 3], min(times[len(times) // 2] + 1, times[-1]), times[-1]}
    for timestamp in wanted:
        first = next(record for record in records if record.timestamp >= timestamp)
        found = log.offset_for_timestamp(timestamp)
        assert found == (first.timestamp, first.offset, 0)
    assert log.offset_for_timestamp(times[-1] + 1) is None
    largest = next(record for record in records if record.timestamp == times[-1])
    assert log.max_timestamp_offset() == (largest.timestamp, largest.offset, 0)
