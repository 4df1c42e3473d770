from __future__ import annotations

import random
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression.codecs import (
    Codec,
    compress,
    decompress,
    largest_decompressed_size,
    max_decompressed_size,
)
from odradek.protocol.errors import DecompressionLimitError, RemoteProtocolError

TEXT = b"a line of text that repeats itself, and repeats itself, and repeats itself\n" * 3000
NOISE = random.Random(7).randbytes(70_000)
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "one", "text", "noise"])
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_compressed_data_decompress_to_the_same_bytes(codec: Codec, data: bytes, buffer: type) -> None:
    assert decompress(codec, buffer(compress(codec, buffer(data)))) == data


@pytest.mark.parametrize("codec", Codec)
def test_data_of_several_pieces_are_joined(codec: Codec) -> None:
    data = NOISE * 40 + bytes(9_000_000) + NOISE
    compressed = compress(codec, data)
    assert decompress(codec, compressed, len(data)) == data
    if codec is not Codec.NONE:
        with pytest.raises(RemoteProtocolError):
            decompress(codec, compressed[: len(compressed) // 2], len(data))


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 17)), (Codec.ZSTD, (-131072, 3, 22))],
)
def test_every_level_that_kafka_allows(codec: Codec, levels: tuple[int, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT


def test_the_slow_compressors_are_not_the_default_ones() -> None:
    words = [b"%d" % (i * i) for i in range(2000)]
    random.Random(1).shuffle(words)
    text = b" ".join(words * 3)
    for codec, slow in ((Codec.GZIP, 9), (Codec.LZ4, 12), (Codec.ZSTD, 19)):
        assert len(compress(codec, text, slow)) < len(compress(codec, text))
    assert compress(Codec.LZ4, TEXT, 9) == compress(Codec.LZ4, TEXT)
    assert compress(Codec.LZ4, TEXT, 12) != compress(Codec.LZ4, TEXT)


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(DecompressionLimitError):
        decompress(codec, compressed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_strict_prefix_is_refused(codec: Codec) -> None:
    compressed = compress(codec, TEXT[:40_000] + NOISE[:300])
    for end in [*range(min(len(compressed), 400)), *range(max(len(compressed) - 400, 0), len(compressed))]:
        # Framed snappy has no end mark: a prefix that ends around a block is a shorter text, as for Kafka.
        if codec is Codec.SNAPPY and end >= 8:
            first_end = 16 + 4 + struct.unpack_from(">i", compressed, 16)[0]
            if end < 20 or 0 <= end - first_end < 4:
                assert decompress(codec, compressed[:end]) == (b"" if end < 20 else TEXT[: 32 * 1024])
                continue
        with pytest.raises(RemoteProtocolError):
            decompress(codec, compressed[:end])


@given(st.sampled_from(COMPRESSED), st.binary(max_size=200), st.integers(0, 2))
def test_random_bytes_raise_only_remote_protocol_errors(codec: Codec, data: bytes, magic: int) -> None:
    try:
        decompress(codec, data, 1 << 20, magic)
    except RemoteProtocolError:
        pass


@given(st.sampled_from(COMPRESSED), st.integers(0), st.integers(0, 7), st.integers(0, 2))
def test_a_flipped_bit_is_refused_or_read_within_the_bound(codec: Codec, at: int, bit: int, magic: int) -> None:
    compressed = bytearray(compress(codec, TEXT[:50_000]))
    compressed[at % len(compressed)] ^= 1 << bit
    try:
        assert len(decompress(codec, compressed, 60_000, magic)) <= 60_000
    except RemoteProtocolError:
        pass


def test_successive_gzip_members_are_read_and_other_bytes_ignored_as_by_java() -> None:
    members = zlib.compress(b"one ", wbits=31) + zlib.compress(b"two", wbits=31)
    assert decompress(Codec.GZIP, members) == b"one two"
    assert decompress(Codec.GZIP, members + b"rest") == b"one two"
    with pytest.raises(RemoteProtocolError):
        decompress(Codec.GZIP, members + b"\x1f\x8brest")


def test_the_number_of_gzip_members_is_limited() -> None:
    member = zlib.compress(b"x", wbits=31)
    assert decompress(Codec.GZIP, member * 1000) == b"x" * 1000
    with pytest.raises(RemoteProtocolError, match="members"):
        decompress(Codec.GZIP, member * 1001)


def test_snappy_is_read_raw_and_written_in_the_framing_of_java() -> None:
    assert decompress(Codec.SNAPPY, snappy.compress(TEXT)) == TEXT
    framed = compress(Codec.SNAPPY, TEXT)
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    length = struct.unpack_from(">i", framed, 16)[0]
    assert snappy.uncompress(framed[20 : 20 + length]) == TEXT[: 32 * 1024]


def test_snappy_streams_may_be_joined() -> None:
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"one ") + compress(Codec.SNAPPY, b"two")) == b"one two"


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff\x0f",  # 4 GiB in no bytes
        b"\x80\x80\x40" + bytes(8),  # 1 MiB in eight
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff",  # a block of -1
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff",  # a block of 2 GiB
    ],
)
def test_snappy_lengths_are_checked_before_memory_is_allocated(data: bytes) -> None:
    """CVE-2023-34455."""
    with pytest.raises(RemoteProtocolError):
        decompress(Codec.SNAPPY, data)


def test_lz4_is_written_as_kafka_writes_it() -> None:
    compressed = compress(Codec.LZ4, TEXT)
    assert compressed[:6] == b"\x04\x22\x4d\x18\x60\x40"  # version 1, independent blocks, nothing else; 64 KiB


@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("store_size", [False, True])
@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
def test_lz4_frames_of_every_kind_that_kafka_reads(
    content_checksum: bool, block_checksum: bool, store_size: bool, block_size: int
) -> None:
    compressed = bytearray(
        lz4.frame.compress(
            TEXT,
            block_linked=False,
            content_checksum=content_checksum,
            block_checksum=block_checksum,
            store_size=store_size,
            block_size=block_size,
        )
    )
    assert decompress(Codec.LZ4, compressed + b"rest") == TEXT
    compressed[14 if store_size else 6] ^= 0xFF  # the header checksum, wrong in magic 0 and verified only in later ones
    assert decompress(Codec.LZ4, compressed, magic=0) == TEXT
    with pytest.raises(RemoteProtocolError):
        decompress(Codec.LZ4, compressed, magic=1)


def test_lz4_blocks_that_depend_on_each_other_are_refused_as_by_kafka() -> None:
    with pytest.raises(RemoteProtocolError, match="depend"):
        decompress(Codec.LZ4, lz4.frame.compress(TEXT, block_linked=True))


@pytest.mark.parametrize(
    ("at", "value"), [(0, 5), (4, 0xA0), (4, 0x61), (4, 0x62), (5, 0x30), (5, 0xC0), (5, 0x41), (6, 0)]
)
@pytest.mark.parametrize("magic", [0, 2])
def test_malformed_lz4_headers_are_refused(at: int, value: int, magic: int) -> None:
    compressed = bytearray(compress(Codec.LZ4, TEXT))
    compressed[at] = value
    if (at, magic) == (6, 0):
        assert decompress(Codec.LZ4, compressed, magic=0) == TEXT
        return
    with pytest.raises(RemoteProtocolError):
        decompress(Codec.LZ4, compressed, magic=magic)


@pytest.mark.parametrize("write_checksum", [False, True])
@pytest.mark.parametrize("write_content_size", [False, True])
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, bytes(500_000)])
def test_zstd_frames_of_every_kind(write_checksum: bool, write_content_size: bool, data: bytes) -> None:
    compressor = zstandard.ZstdCompressor(write_checksum=write_checksum, write_content_size=write_content_size)
    assert decompress(Codec.ZSTD, compressor.compress(data)) == data


def test_successive_zstd_frames_are_read_and_skippable_ones_skipped() -> None:
    skippable = b"\x52\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    data = zstandard.compress(b"one ") + skippable + zstandard.compress(b"two")
    assert decompress(Codec.ZSTD, data) == b"one two"
    with pytest.raises(RemoteProtocolError):
        decompress(Codec.ZSTD, data + b"rest")


def test_zstd_frames_of_many_small_blocks_are_read() -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    flushed = b""
    for start in range(0, len(TEXT), 5000):
        flushed += compressor.compress(TEXT[start : start + 5000]) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert decompress(Codec.ZSTD, flushed + compressor.flush(), len(TEXT)) == TEXT


def test_a_wrong_zstd_content_size_is_refused() -> None:
    frame = bytearray(zstandard.compress(TEXT[:300]))
    assert frame[4] >> 6 == 1  # a content size of two bytes follows, 256 less than it is
    frame[4] = frame[4] & 0x3F | 3 << 6
    with pytest.raises(RemoteProtocolError, match="claims"):
        decompress(Codec.ZSTD, frame[:5] + struct.pack("<Q", 100 << 20) + frame[7:])


@pytest.mark.parametrize("codec", Codec)
def test_threads_compress_and_decompress_at_the_same_time(codec: Codec) -> None:
    def work(seed: int) -> bool:
        data = random.Random(seed).randbytes(20_000) + bytes(200_000)
        return all(decompress(codec, compress(codec, data)) == data for _ in range(30))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))


# 1 GiB of zeros, in a form that is quick to create, under a limit on the memory of the whole process: 16 MiB are
# allowed, and in addition a piece and the library's window.
BOMB = """
import resource, struct, sys, zlib
from pathlib import Path
import lz4.frame, snappy, zstandard
from odradek.protocol.compression.codecs import Codec, compress, decompress
from odradek.protocol.errors import DecompressionLimitError

codec, kind, piece = Codec[sys.argv[1]], sys.argv[2], bytes(1 << 20)
if codec is Codec.GZIP:
    compressor = zlib.compressobj(wbits=31)
    bomb = b"".join([compressor.compress(piece) for _ in range(128)] + [compressor.flush()]) * 8
elif codec is Codec.SNAPPY:
    block = snappy.compress(piece)
    bomb = compress(codec, b"")[:16] + (struct.pack(">i", len(block)) + block) * 1024
elif codec is Codec.LZ4:
    with lz4.frame.LZ4FrameCompressor(block_linked=False) as compressor:
        bomb = compressor.begin() + b"".join(compressor.compress(piece) for _ in range(1024)) + compressor.flush()
else:
    window_log = 27 if kind == "window" else 0
    parameters = zstandard.ZstdCompressionParameters(compression_level=3, window_log=window_log)
    size = 1 << 30 if kind == "size" else -1
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size)
    bomb = b"".join([compressor.compress(piece) for _ in range(1024)] + [compressor.flush()])
    if kind == "frames":
        bomb = zstandard.compress(piece) * 1024
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[3]), -1))
try:
    decompress(codec, bomb, int(sys.argv[4]))
except DecompressionLimitError:
    print("refused")
except MemoryError:
    print("out of memory")
"""


def outcome_of_bomb(codec: Codec, kind: str, memory: int, max_size: int) -> str:
    command = [sys.executable, "-c", BOMB, codec.name, kind, str(memory), str(max_size)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="measures the process by /proc")
@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_gigabyte_of_zeros_takes_no_more_memory_than_the_limit(codec: Codec) -> None:
    assert outcome_of_bomb(codec, "plain", memory=24 << 20, max_size=16 << 20) == "refused\n"
    # so the limit is effective
    assert outcome_of_bomb(codec, "plain", memory=24 << 20, max_size=64 << 20) == "out of memory\n"


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="measures the process by /proc")
@pytest.mark.parametrize(("kind", "memory"), [("size", 1 << 20), ("frames", 24 << 20), ("window", 60 << 20)])
def test_neither_the_size_nor_the_window_that_a_zstd_frame_states_is_allocated(kind: str, memory: int) -> None:
    assert outcome_of_bomb(Codec.ZSTD, kind, memory, max_size=16 << 20) == "refused\n"


def test_a_frame_with_a_window_much_larger_than_its_content_is_read() -> None:
    parameters = zstandard.ZstdCompressionParameters(compression_level=3, window_log=27)
    for data in (TEXT, NOISE * 3, bytes(9_000_000) + NOISE + bytes(9_000_000) + NOISE):
        stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        compressed = stream.compress(data) + stream.flush()
        assert zstandard.get_frame_parameters(compressed).window_size == 128 << 20
        assert decompress(Codec.ZSTD, compressed) == data
        assert decompress(Codec.ZSTD, compressed, len(data)) == data
        with pytest.raises(DecompressionLimitError):
            decompress(Codec.ZSTD, compressed, len(data) - 1)


def test_a_zstd_window_that_kafka_refuses_is_refused() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    frame = bytearray(stream.compress(TEXT) + stream.flush())
    frame[5] = 18 << 3  # 256 MiB
    with pytest.raises(RemoteProtocolError, match="window"):
        decompress(Codec.ZSTD, frame)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_megabyte_of_equal_bytes_is_within_the_limit(codec: Codec) -> None:
    data = bytes(1 << 20)
    assert decompress(codec, compress(codec, data)) == data


def test_the_limit_is_128_mib_or_ten_times_the_compressed_size() -> None:
    assert max_decompressed_size(1_000) == max_decompressed_size(1 << 20) == 128 << 20
    assert max_decompressed_size(50 << 20) == 500 << 20


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, bytes(3_000_000)])
def test_the_largest_size_that_data_can_have_is_known_before_they_are_decompressed(codec: Codec, data: bytes) -> None:
    compressed = compress(codec, data)
    assert len(data) <= largest_decompressed_size(codec, compressed)


def test_a_size_that_an_lz4_frame_states_is_refused_before_anything_is_decompressed() -> None:
    compressed = lz4.frame.compress(TEXT, block_linked=False, store_size=True)
    with pytest.raises(DecompressionLimitError):
        decompress(Codec.LZ4, compressed[:-20], len(TEXT) - 1)  # the truncation would be another error
