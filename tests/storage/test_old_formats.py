"""Segments of brokers before Kafka 0.11: message sets of magic 0 and 1 are read and recovered."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import pytest

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.records.message_set import iter_messages
from tests.storage.logs import NOW, TOPIC_ID, append, open_log_dir, records_in

CONFIG = LogConfig(index_interval_bytes=60)


def message(offset: int, value: bytes, magic: int = 1, timestamp: int = NOW, attributes: int = 0) -> bytes:
    stamp = struct.pack(">q", timestamp) if magic else b""
    body = struct.pack(">bb", magic, attributes) + stamp + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(last_offset: int, *values: bytes) -> bytes:
    """Three messages compressed into one, which has the offset of the last of them; offsets inside count from 0."""
    inner = b"".join(message(index, value, timestamp=NOW + index) for index, value in enumerate(values))
    return message(last_offset, gzip.compress(inner), timestamp=NOW + len(values) - 1, attributes=1)


OLD = [
    message(0, b"a", magic=0),
    message(1, b"b", timestamp=NOW + 10),
    wrapper(4, b"c", b"d", b"e"),
    message(5, b"f", timestamp=NOW + 30),
]


def written(path: Path, data: bytes) -> Log:
    return written_dir(path, data).logs["t", 0]


def written_dir(path: Path, data: bytes) -> LogDir:
    log_dir = open_log_dir(path, CONFIG)
    log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    log_dir.close(clean=False)
    (path / "t-0" / f"{0:020d}.log").write_bytes(data)
    return open_log_dir(path, CONFIG)


def test_old_messages_are_read_beside_new_batches(tmp_path: Path) -> None:
    log = written(tmp_path, b"".join(OLD))
    assert log.log_end_offset == 6
    assert append(log, b"new") == 6
    with log.read(0, 1 << 20, 6) as data:
        assert [r.value for r in iter_messages(data.read())] == [b"a", b"b", b"c", b"d", b"e", b"f"]
    for offset in (2, 3, 4):  # all in the wrapper
        with log.read(offset, 1, 6) as data:
            assert data.read() == OLD[2]
    with log.read(6, 1 << 20, 7) as data:
        assert [r.value for r in records_in(data.read())] == [b"new"]


def test_old_messages_are_found_by_time(tmp_path: Path) -> None:
    log = written(tmp_path, b"".join(OLD))
    assert log.offset_for_timestamp(NOW + 10) == (NOW + 10, 1, -1)
    assert log.offset_for_timestamp(NOW + 11) == (NOW + 30, 5, -1)
    assert log.offset_for_timestamp(NOW) == (NOW + 10, 1, -1)
    assert log.max_timestamp_offset() == (NOW + 30, 5, -1)


@pytest.mark.parametrize("at", range(len(OLD)))
def test_a_damaged_old_message_ends_the_log(tmp_path: Path, at: int) -> None:
    damaged = bytearray(OLD[at])
    damaged[-1] ^= 1
    log = written(tmp_path, b"".join([*OLD[:at], bytes(damaged), *OLD[at + 1 :]]))
    assert log.log_end_offset == (0, 1, 2, 5)[at]
    assert append(log, b"new") == (0, 1, 2, 5)[at]
