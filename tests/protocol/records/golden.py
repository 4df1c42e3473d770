"""Records that Apache Kafka 4.3.1 wrote, and their contents.

`data/records/logs`: segments that a broker wrote for librdkafka's producers, with what a consumer read from them as
JSON lines (keys, values and header values in base64). The five codecs hold the same records. `rolled` is the beginning
of a segment with timestamps out of order.

`data/records/kafka`: one batch or message set a file, by `Generate.java` beside them: every format and codec, with the
record classes of Kafka's clients.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

from odradek.protocol.records.record_headers import Header
from odradek.protocol.records.record_iterator import Record

DATA = Path(__file__).parents[1] / "data" / "records"

BASE_OFFSET = 100
BASE_TIMESTAMP = 1_600_000_000_000
APPEND_TIME = 1_700_000_000_123
DELETE_HORIZON = 1_650_000_000_000


def log_names() -> list[str]:
    return sorted(path.name.removesuffix(".log") for path in (DATA / "logs").glob("*.log"))


def log_bytes(name: str) -> bytes:
    return (DATA / "logs" / f"{name}.log").read_bytes()


def log_records(name: str) -> list[Record]:
    """Return the records that a consumer read from the log, without control records."""
    path = DATA / "logs" / f"{name.partition('-')[0]}.jsonl.gz"
    return [
        Record(
            row["offset"],
            row["timestamp"],
            _decoded(row["key"]),
            _decoded(row["value"]),
            [(key, _decoded(value)) for key, value in row["headers"]],
        )
        for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    ]


def kafka_files(magic: int) -> list[str]:
    return sorted(path.name.removesuffix(".bin") for path in (DATA / "kafka").glob(f"v{magic}-*.bin"))


def kafka_bytes(name: str) -> bytes:
    return (DATA / "kafka" / f"{name}.bin").read_bytes()


def kafka_records(name: str) -> list[Record]:
    """Return the records that `Generate.java` wrote into the file."""
    magic = int(name[1])
    records = []
    for i in range(20):
        timestamp = BASE_TIMESTAMP + i * 1000 - (3_600_000 if i == 5 else 0)
        if magic == 0:
            timestamp = -1
        elif name.endswith("append-time"):
            timestamp = APPEND_TIME
        key = None if i % 4 == 0 else f"key-{i}".encode()
        value = None if i % 7 == 0 else f"value-{i} ".encode() * (i % 5)
        if i == 19 and "none" not in name:
            value = bytes(200_000)
        headers: list[Header] = [("trace", f"t{i}".encode()), ("none", None)] if magic == 2 and i % 3 == 0 else []
        records.append(Record(BASE_OFFSET + i, timestamp, key, value, headers))
    return records


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
