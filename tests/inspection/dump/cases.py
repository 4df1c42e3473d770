"""Files, sound and damaged, with the flags to dump them: one table for our command and for Kafka's.

What Kafka's printed of each is in `recorded/`; `python -m tests.inspection.dump.record` writes that anew.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from odradek.protocol import codec
from odradek.protocol.checksum import crc32
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import write_crc
from odradek.protocol.schema import Message
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.protocol.stored_records.consumer_protocol import TopicPartition as Owned
from odradek.protocol.stored_records.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from odradek.protocol.stored_records.record_types import GROUP_RECORDS

GOLDEN_DIRS = Path(__file__).parents[2] / "storage" / "golden_dirs"
Files = dict[str, bytes]
T0 = 1_700_000_000_000
LOG, INDEX, TIME_INDEX = (f"{0:020}.{suffix}" for suffix in ("log", "index", "timeindex"))


class Case(NamedTuple):
    """Files by name, and what stands behind `--files` and after it."""

    name: str
    files: Callable[[], Files]
    dumped: str
    options: tuple[str, ...] = ()


def golden(partition: str, base_offset: int = 0) -> Files:
    return {path.name: path.read_bytes() for path in (GOLDEN_DIRS / partition).glob(f"{base_offset:020}.*")}


def changed(files: Files, name: str, position: int, new: bytes) -> Files:
    """The files with some bytes of one replaced, from the end for a negative position."""
    data = files[name]
    start = position % len(data)
    return files | {name: data[:start] + new + data[start + len(new) :]}


def appended(files: Files, name: str, new: bytes) -> Files:
    return files | {name: files[name] + new}


def cut(files: Files, name: str, size: int) -> Files:
    return files | {name: files[name][:size]}


def without(files: Files, name: str) -> Files:
    return {other: data for other, data in files.items() if other != name}


def log_of(*batches: bytes | bytearray) -> Files:
    return {"0.log": b"".join(batches)}


def batch_of(
    records: Iterable[tuple[bytes | None, bytes | None]], *, base_offset: int = 0, is_control: bool = False
) -> bytearray:
    builder = BatchBuilder(is_control=is_control)
    for key, value in records:
        builder.append(T0, key, value, [("grün", b"1"), ("empty", None)])
    return builder.build(base_offset, 3)


def message_of(
    offset: int, magic: int, key: bytes | None, value: bytes | None, attributes: int = 0, checksum_error: int = 0
) -> bytes:
    data = struct.pack(">bb", magic, attributes) + (struct.pack(">q", T0 + offset) if magic else b"")
    for part in (key, value):
        data += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">qiI", offset, len(data) + 4, crc32(data) ^ checksum_error) + data


def gzip_of(data: bytes) -> bytes:
    """Data in gzip's format, not compressed, so that no release of a library changes the bytes."""
    stored_block = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF) + data
    return bytes.fromhex("1f8b0800000000000003") + stored_block + struct.pack("<II", crc32(data), len(data))


def messages() -> Files:
    inner = [message_of(offset, 1, b"k%d" % offset, b"v") for offset in range(3)]
    return log_of(
        message_of(0, 0, None, b"without a key"),
        message_of(1, 1, b"key", None, attributes=8),
        message_of(2, 1, b"key", b"wrong checksum", checksum_error=1),
        message_of(5, 1, None, gzip_of(b"".join(inner)), attributes=Codec.GZIP),
        message_of(8, 1, None, gzip_of(b"".join(inner)), attributes=Codec.GZIP | 8),
        message_of(9, 0, None, gzip_of(message_of(9, 0, b"k", b"v") + inner[0][:-1]), attributes=Codec.GZIP),
    )


def not_text() -> Files:
    malformed = "ff fe | ed a0 80 | ed a0 | ed a0 41 | ed bf bf ed | f4 90 80 80 | c0 80 | e1 80 41 | f1 80 80"
    return log_of(batch_of((bytes.fromhex(part), bytes.fromhex(part) + b"|") for part in malformed.split("|")))


def control_records() -> Files:
    def control(key: bytes, value: bytes | None) -> bytearray:
        return batch_of([(key, value)], is_control=True)

    voters = b"\0\0\0\0\0\1\2\0\0\0\7\0\1\0"
    return log_of(
        control(struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 9)),
        control(struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 9)),
        control(struct.pack(">hh", 0, 2), voters),
        control(struct.pack(">hh", 0, 2), b"\0\1" + voters[2:]),
        control(struct.pack(">hh", 0, 3), struct.pack(">hqb", 0, T0, 0)),
        control(struct.pack(">hh", 0, 4), b"\0\0\0"),
        control(struct.pack(">hh", 0, 5), b"\0\0\0\1\0"),
        control(struct.pack(">hh", 0, 6), b"\0\0\2\0\0\0\1" + bytes(16) + b"\1\0\0\0\1\0\0\0"),
        control(struct.pack(">hh", 0, 77), None),
        control(struct.pack(">hh", -1, 0), None),
    )


def stored(version: int, message: Message, message_version: int | None = None) -> bytes:
    body = codec.encode(message, version if message_version is None else message_version)
    return struct.pack(">h", version) + bytes(body)


def group_records() -> Files:
    """A record of each type with the defaults of its messages, and a group whose members say something."""
    batches = []
    for record_type, record in GROUP_RECORDS.items():
        key = stored(record_type, record.key(), 0)
        batches.append(batch_of([(key, stored(0, record.value())), (key, None)]))
    subscription = stored(3, ConsumerProtocolSubscription(['a"\n\x1fü'], b"user", [Owned("a", [0, 1])], 7, None))
    assignment = stored(0, ConsumerProtocolAssignment([Owned("a", [2])], None))
    newer = b"\0\7"
    opaque = [
        (subscription, assignment),
        (subscription[:-3], b""),
        (newer + subscription[2:], newer + assignment[2:]),
        (stored(0, ConsumerProtocolSubscription(["a"])), newer + stored(0, ConsumerProtocolAssignment())[2:]),
    ]
    key = stored(2, GroupMetadataKey("group"), 0)
    for version in range(5):
        instance_id, timeout = "static" if version >= 3 else None, 300_000 if version >= 1 else -1
        members = [
            MemberMetadata(f"member-{number}", instance_id, "client", "/127.0.0.1", timeout, 45_000, *parts)
            for number, parts in enumerate(opaque)
        ]
        value = GroupMetadataValue("consumer", 3, "range", None, T0 if version >= 2 else -1, members)
        batches.append(batch_of([(key, stored(version, value))]))
    return log_of(*batches)


def malformed_records() -> Files:
    key = stored(1, GROUP_RECORDS[1].key(), 0)
    value = stored(0, GROUP_RECORDS[1].value())
    group_key = stored(2, GroupMetadataKey("g"), 0)
    group_value = stored(4, GroupMetadataValue("consumer"))
    pairs = [
        (struct.pack(">h", 9) + key, value),
        (b"\0", value),
        (key[:5], value),
        (struct.pack(">hh", 1, 9), value),
        (struct.pack(">hh", 1, -1), value),
        (key, b""),
        (key, value[:9]),
        (key, struct.pack(">h", 5) + value[2:]),
        (struct.pack(">hH", 1, 1) + b"\xff" + key[4:], value),
        (group_key, struct.pack(">h", 4) + b"\xff\xff\xff\xff\xff\1"),
        (group_key, struct.pack(">h", 4) + b"\xff\xff\xff\x0f"),
        (group_key, group_value[:-2] + b"\x7f"),
    ]
    return log_of(*(batch_of([pair]) for pair in pairs), batch_of([(None, value)]))


def short_batch() -> Files:
    """A batch that says to end inside its header, with a sound one behind it."""
    return log_of(
        batch_of([(b"k", b"v")])[:8] + struct.pack(">i", 20) + bytes(4) + b"\2" + bytes(15), batch_of([(b"k", b"v")])
    )


def with_attributes(attributes: int) -> Files:
    batch = batch_of([(b"k", b"v")])
    struct.pack_into(">h", batch, 21, attributes)
    write_crc(batch, 0, len(batch))
    return log_of(batch)


def sequences_at_the_end() -> Files:
    builder = BatchBuilder(producer_id=5, producer_epoch=1, base_sequence=(1 << 31) - 2)
    for _ in range(4):
        builder.append(T0, None, b"v")
    return log_of(builder.build())


def named(names: str) -> Callable[[], Files]:
    return lambda: dict.fromkeys(names.split(","), b"")


def snapshot() -> Files:
    return {"66.snapshot": golden("transactional-0", 66)[f"{66:020}.snapshot"]}


NONE, LZ4, ZSTD, MARKERS = (golden(name) for name in ("codec-none-0", "codec-lz4-0", "codec-zstd-0", "transactional-0"))
TRANSACTIONS = golden("transactional-0", 10)
TRANSACTIONS_LOG, TRANSACTION_INDEX = f"{10:020}.log", f"{10:020}.txnindex"
UNKNOWN = "notes,leader-epoch-checkpoint,0.log.deleted"
TWO = [(b"k", b"v"), (b"k", b"w")]
ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
MISSING_OFFSETS = TIME_ENTRY.pack(T0, 3) + TIME_ENTRY.pack(T0, 999)
TO_A_WRAPPER = TIME_ENTRY.pack(T0, 5)
PRINT, DEEP, SKIP, VERIFY, SANITY = (
    "--print-data-log", "--deep-iteration", "--skip-record-metadata", "--verify-index-only", "--index-sanity-check"
)  # fmt: skip
OFFSETS, VALUE_DECODER = "--offsets-decoder", "--value-decoder-class"

CASES = [
    Case("log-batches", lambda: NONE, LOG),
    Case("log-records", lambda: TRANSACTIONS, TRANSACTIONS_LOG, (DEEP,)),
    Case("log-contents-only", lambda: TRANSACTIONS, TRANSACTIONS_LOG, (PRINT, SKIP)),
    Case("log-no-contents-no-metadata", lambda: MARKERS, LOG, (DEEP, SKIP)),
    Case("log-value-decoder", lambda: MARKERS, LOG, (VALUE_DECODER, "org.apache.kafka.tools.api.StringDecoder")),
    Case("log-max-bytes", lambda: NONE, LOG, ("--max-bytes", "5000", PRINT)),
    Case("log-max-bytes-inside-the-first-batch", lambda: NONE, LOG, ("--max-bytes", "100")),
    Case("log-empty", lambda: log_of(b""), "0.log", (PRINT,)),
    Case("log-cut-in-a-batch", lambda: cut(NONE, LOG, 17000), LOG),
    Case("log-cut-in-a-header", lambda: cut(NONE, LOG, 10), LOG),
    Case("log-zeros-behind", lambda: appended(MARKERS, LOG, bytes(17)), LOG),
    Case("log-more-zeros-behind", lambda: appended(MARKERS, LOG, bytes(18)), LOG),
    Case("log-bit-in-a-value", lambda: changed(MARKERS, LOG, -3, b"\0"), LOG, (PRINT,)),
    Case("log-bit-in-a-record-length", lambda: changed(MARKERS, LOG, 62, b"\x7f"), LOG, (PRINT,)),
    Case("log-bit-in-the-last-record-length", lambda: changed(MARKERS, LOG, -13, b"\x7f"), LOG, (PRINT,)),
    Case("log-fewer-records-counted", lambda: changed(MARKERS, LOG, 60, b"\5"), LOG, (PRINT,)),
    Case("log-more-records-counted", lambda: changed(MARKERS, LOG, 60, b"\x0b"), LOG, (PRINT,)),
    Case("log-bit-in-compressed-records", lambda: changed(ZSTD, LOG, 62, b"\0"), LOG, (PRINT,)),
    Case("log-fewer-compressed-records-counted", lambda: changed(LZ4, LOG, 60, b"\5"), LOG, (PRINT,)),
    Case("log-codec-that-is-none", lambda: with_attributes(6), "0.log"),
    Case("log-delete-horizon", lambda: with_attributes(0x40), "0.log"),
    Case("log-sequences-start-over", sequences_at_the_end, "0.log", (PRINT,)),
    Case("log-short-batch", short_batch, "0.log"),
    Case("log-short-batch-records", short_batch, "0.log", (DEEP,)),
    Case("log-magic-3", lambda: changed(MARKERS, LOG, 16, b"\3"), LOG, (PRINT,)),
    Case("log-magic-minus-1", lambda: changed(MARKERS, LOG, 16, b"\xff"), LOG, (PRINT,)),
    Case("log-messages", messages, "0.log", (PRINT,)),
    Case("log-text-that-is-none", not_text, "0.log", (PRINT,)),
    Case("log-control-records", control_records, "0.log", (PRINT,)),
    Case("log-gaps", lambda: log_of(batch_of(TWO, base_offset=5), batch_of(TWO, base_offset=9)), "0.log", (DEEP,)),
    Case("all-of-a-segment", lambda: TRANSACTIONS, ",".join(sorted(TRANSACTIONS)), (DEEP,)),
    Case("offsets", lambda: golden("__consumer_offsets-49"), LOG, (OFFSETS,)),
    Case("offsets-every-type", group_records, "0.log", (OFFSETS,)),
    Case("offsets-malformed", malformed_records, "0.log", (OFFSETS, SKIP)),
    Case("transactions", lambda: golden("__transaction_state-20"), LOG, ("--transaction-log-decoder",)),
    Case("index-sanity", lambda: NONE, INDEX, (SANITY,)),
    Case("index-empty", lambda: MARKERS, INDEX, (SANITY,)),
    Case("index-verified", lambda: NONE, INDEX, (VERIFY,)),
    Case("index-mismatches", lambda: NONE | {INDEX: ENTRY.pack(7, 0) + ENTRY.pack(70, 4593)}, INDEX, (VERIFY,)),
    Case("index-zeros-behind", lambda: appended(NONE, INDEX, bytes(800)), INDEX),
    Case("index-beyond-the-log", lambda: changed(NONE, INDEX, -4, b"\1"), INDEX),
    Case("index-into-a-batch", lambda: changed(NONE, INDEX, -1, b"\1"), INDEX),
    Case("index-of-small-messages", lambda: NONE, INDEX, ("--max-message-size", "100")),
    Case("index-negative-offset", lambda: changed(NONE, INDEX, -8, b"\xff"), INDEX, (SANITY,)),
    Case("index-odd-size", lambda: appended(NONE, INDEX, b"odd"), INDEX, (SANITY,)),
    Case("index-without-log", lambda: without(NONE, LOG), INDEX),
    Case("timeindex-sanity", lambda: NONE, TIME_INDEX, (SANITY,)),
    Case("timeindex-zeros-behind", lambda: appended(NONE, TIME_INDEX, bytes(1200)), TIME_INDEX),
    Case("timeindex-wrong-timestamp", lambda: changed(NONE, TIME_INDEX, 7, b"\0"), TIME_INDEX),
    Case("timeindex-unordered", lambda: appended(NONE, TIME_INDEX, NONE[TIME_INDEX][:12]), TIME_INDEX, (VERIFY,)),
    Case("timeindex-missing-offsets", lambda: NONE | {TIME_INDEX: MISSING_OFFSETS}, TIME_INDEX),
    Case("timeindex-last-below-first", lambda: changed(NONE, TIME_INDEX, -12, b"\xff"), TIME_INDEX, (SANITY,)),
    Case("timeindex-of-messages", lambda: messages() | {"0.index": b"", "0.timeindex": TO_A_WRAPPER}, "0.timeindex"),
    Case("txnindex", lambda: TRANSACTIONS, TRANSACTION_INDEX),
    Case("txnindex-cut", lambda: cut(TRANSACTIONS, TRANSACTION_INDEX, 40), TRANSACTION_INDEX),
    Case("txnindex-newer-version", lambda: changed(TRANSACTIONS, TRANSACTION_INDEX, 34, b"\1"), TRANSACTION_INDEX),
    Case("txnindex-second-byte", lambda: changed(TRANSACTIONS, TRANSACTION_INDEX, 1, b"\1"), TRANSACTION_INDEX),
    Case("snapshot", snapshot, "66.snapshot"),
    Case("snapshot-newer-version", lambda: changed(snapshot(), "66.snapshot", 1, b"\2"), "66.snapshot"),
    Case("snapshot-bit", lambda: changed(snapshot(), "66.snapshot", -1, b"\1"), "66.snapshot"),
    Case("snapshot-cut", lambda: cut(snapshot(), "66.snapshot", 30), "66.snapshot"),
    Case("snapshot-empty", named("66.snapshot"), "66.snapshot"),
    Case("snapshot-missing", dict, "66.snapshot"),
    Case("unknown-files", named(f"{UNKNOWN},x"), f"{UNKNOWN},.//x//"),
    Case("name-that-is-no-offset", named("notes.log"), "notes.log"),
    Case("log-missing", dict, "0.log"),
]  # fmt: skip
