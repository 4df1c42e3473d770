"""Logs that Apache Kafka 4.3.1 wrote, read as a Fetch response: the same records as Kafka's own clients read."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from odradek.client.consumer.completed_fetch import CompletedFetch
from odradek.client.record import ConsumerRecord, TopicPartition
from odradek.protocol.messages.fetch import AbortedTransaction

GOLDEN = Path(__file__).resolve().parents[2] / "storage"
ABORTED = struct.Struct(">bxqqqq")  # an entry of a .txnindex

TOPICS = ["codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "rolled", "compacted", "idempotent"]


@cache
def expected(name: str) -> list[dict[str, Any]]:
    path = GOLDEN / "golden_expected" / f"{name}.jsonl"
    text = path.read_text() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def fetched(topic: str, *, read_committed: bool = False, start: int = 0) -> list[dict[str, Any]]:
    directory = GOLDEN / "golden_dirs" / f"{topic}-0"
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    aborted = None
    if read_committed:
        entries = b"".join(path.read_bytes() for path in sorted(directory.glob("*.txnindex")))
        aborted = [AbortedTransaction(producer, first) for _, producer, first, *_ in ABORTED.iter_unpack(entries)]
    partition = TopicPartition(topic, 0)
    found = CompletedFetch(partition, memoryview(data), start, check_crcs=True, aborted=aborted)
    return [as_expected(record) for record in found.records]


def as_expected(record: ConsumerRecord) -> dict[str, Any]:
    """A record in the form of the expected files, in which timestamp type 1 is the sender's and 2 the broker's."""
    assert record.timestamp_type is not None
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type + 1,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[name, text(value)] for name, value in record.headers],
    }


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


@pytest.mark.parametrize("topic", [*TOPICS, "logappend", "transactional"])
def test_records_are_those_that_kafkas_clients_read(topic: str) -> None:
    assert fetched(topic) == expected(f"{topic}.records")


def test_committed_records_are_those_that_kafkas_clients_read() -> None:
    wanted = expected("transactional.read_committed")
    assert fetched("transactional", read_committed=True) == wanted
    assert len(wanted) < len(expected("transactional.records"))


@pytest.mark.parametrize("start", [1, 17, 30, 55])
def test_a_fetch_that_begins_inside_of_transactions_skips_the_same_records(start: int) -> None:
    wanted = [row for row in expected("transactional.read_committed") if row["offset"] >= start]
    assert fetched("transactional", read_committed=True, start=start) == wanted
