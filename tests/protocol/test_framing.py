from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import framing
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.framing import FrameReader, ReceiveArena, frame_size


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


def feed(reader: FrameReader, data: bytes) -> int:
    """Pass as much of `data` to the reader as its buffer holds, like a receive; return the number of bytes."""
    room = reader.buffer()
    taken = min(len(room), len(data))
    room[:taken] = data[:taken]
    reader.received(taken)
    return taken


def drain(reader: FrameReader) -> list[bytes]:
    frames = []
    while (frame := reader.next_frame()) is not None:
        frames.append(bytes(frame))
    reader.settle()
    return frames


def split(data: bytes, pieces: list[int], arena: ReceiveArena | None = None) -> list[bytes]:
    reader = FrameReader(arena or ReceiveArena())
    frames, position = [], 0
    while position < len(data):
        piece = pieces.pop(0) if pieces else len(data)
        position += feed(reader, data[position : position + piece])
        frames += drain(reader)
    assert reader.buffered == 0
    return frames


def test_several_frames_of_one_receive_are_returned_in_order() -> None:
    assert split(framed(b"one", b"", b"three"), []) == [b"one", b"", b"three"]


def test_frames_received_byte_by_byte_are_returned_whole() -> None:
    data = framed(b"one", b"", b"x" * 300)
    assert split(data, [1] * len(data)) == [b"one", b"", b"x" * 300]


@given(
    st.lists(
        st.integers(0, 3000) | st.sampled_from([16_380, 16_384, 65_531, 65_532, 65_533, 140_000, 600_000]), max_size=8
    ),
    st.lists(st.integers(1, 70_000), max_size=60),
)
def test_frames_received_in_any_pieces_are_returned_unchanged(sizes: list[int], pieces: list[int]) -> None:
    payloads = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    assert split(framed(*payloads), pieces) == payloads


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 100_000), st.booleans()), max_size=30),
    st.integers(1, 70_000),
)
def test_retained_frames_keep_their_bytes_whatever_the_readers_of_the_arena_do(
    steps: list[tuple[int, int, bool]], piece: int
) -> None:
    arena = ReceiveArena()
    readers = [FrameReader(arena) for _ in range(3)]
    retained: list[tuple[memoryview, bytes]] = []
    for number, (which, size, keep) in enumerate(steps):
        reader, payload = readers[which], bytes([number % 251]) * size
        data, position = framed(payload, b"next"), 0
        seen = []
        while position < len(data):
            position += feed(reader, data[position : position + piece])
            while (frame := reader.next_frame()) is not None:
                seen.append(bytes(frame))
                if keep:
                    retained.append((frame, seen[-1]))
                    reader.retain()
                del frame
            reader.settle()
        assert seen == [payload, b"next"]
    for view, content in retained:
        assert view == content
        assert not view.readonly


def test_a_frame_may_be_changed_in_place() -> None:
    reader = FrameReader(ReceiveArena())
    feed(reader, framed(b"abc"))
    frame = reader.next_frame()
    assert frame is not None
    frame[0] = ord("x")
    assert frame == b"xbc"


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_bad_size_is_a_remote_protocol_error(size: int) -> None:
    reader = FrameReader(ReceiveArena(), max_frame_size=1000)
    feed(reader, struct.pack(">i", size) + b"rest")
    with pytest.raises(RemoteProtocolError, match=str(size)):
        reader.next_frame()


@pytest.mark.parametrize(
    ("data", "hint"), [(b"\x16\x03\x01\x02\x00\x01", "TLS handshake"), (b"GET / HTTP/1.1\r\n", "HTTP")]
)
def test_another_protocol_is_recognised(data: bytes, hint: str) -> None:
    reader = FrameReader(ReceiveArena())
    feed(reader, data)
    with pytest.raises(RemoteProtocolError, match=hint):
        reader.next_frame()


def test_the_largest_allowed_frame_is_allowed() -> None:
    reader = FrameReader(ReceiveArena(), max_frame_size=1000)
    feed(reader, framed(b"x" * 1000))
    assert reader.next_frame() == b"x" * 1000


def test_frame_size_reads_at_a_position() -> None:
    assert frame_size(b"\xff" + struct.pack(">i", 7), 1, 10) == 7


def test_an_announced_size_costs_nothing_until_its_bytes_come() -> None:
    arena = ReceiveArena()
    tracemalloc.start()
    try:
        readers = [FrameReader(arena) for _ in range(20)]
        for reader in readers:
            feed(reader, struct.pack(">i", 100 * 1024 * 1024) + b"x" * 100)
            reader.settle()
        assert tracemalloc.get_traced_memory()[0] < len(readers) * 70 * 1024
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_received_bytes_of_a_large_frame_and_is_freed() -> None:
    arena = ReceiveArena()
    reader = FrameReader(arena)
    data = framed(bytes(20 * 1024 * 1024))
    tracemalloc.start()
    try:
        position = 0
        while position < len(data):
            position += feed(reader, data[position : position + 100_000])
            reader.settle()
            assert tracemalloc.get_traced_memory()[0] < max(2.5 * position, 1_000_000)
        frame = reader.next_frame()
        assert frame is not None
        assert len(frame) == 20 * 1024 * 1024
        del frame
        reader.settle()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000  # it is too large for the pool
    finally:
        tracemalloc.stop()


def test_successive_large_frames_reuse_one_buffer() -> None:
    arena = ReceiveArena()
    reader = FrameReader(arena)
    data = framed(bytes(900_000))
    buffers = set()
    for _ in range(4):
        position = 0
        while position < len(data):
            position += feed(reader, data[position:])
            if (frame := reader.next_frame()) is not None:
                reader.retain()
                buffers.add(id(frame.obj))
                del frame
    assert len(buffers) == 1


def test_a_large_buffer_with_a_view_is_not_reused() -> None:
    arena = ReceiveArena()
    reader = FrameReader(arena)
    kept = []
    for content in (b"a", b"b"):
        data, position = framed(content * 200_000), 0
        while position < len(data):
            position += feed(reader, data[position:])
            if (frame := reader.next_frame()) is not None:
                kept.append(frame)
                reader.retain()
    assert kept[0] == b"a" * 200_000


def test_trimming_empties_the_pool() -> None:
    arena = ReceiveArena()
    tracemalloc.start()
    try:
        used = arena.acquire(3_000_000)
        arena.release(used)
        del used
        assert len(arena.acquire(2_000_000)) == 3_000_000
        arena.release(arena.acquire(3_000_000))
        arena.trim()
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_an_idle_reader_has_no_buffer() -> None:
    arena = ReceiveArena()
    tracemalloc.start()
    try:
        readers = [FrameReader(arena) for _ in range(1000)]
        for reader in readers:
            feed(reader, framed(b"x" * 500))
            drain(reader)
        assert tracemalloc.get_traced_memory()[0] < 1000 * 400
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("between", [0, framing.ARENA_SIZE // 600])
def test_frames_that_are_retained_one_after_another_leave_those_of_other_readers_alone(between: int) -> None:
    """As when each request of a receive is parked, while other clients send theirs; also in another arena by then."""
    arena = ReceiveArena()
    first, *others = [FrameReader(arena) for _ in range(between + 3)]
    payloads = [bytes([number]) * 300 for number in range(3)]
    retained = []

    def park_next(reader: FrameReader) -> None:
        frame = reader.next_frame()
        assert frame is not None
        retained.append((frame, bytes(frame)))
        reader.retain()
        reader.settle()

    for reader in (first, *others[:-1]):
        feed(reader, framed(*payloads))
        park_next(reader)
    park_next(first)
    feed(others[-1], framed(*[b"other"] * 200))

    park_next(first)
    for reader in others[:-1]:
        park_next(reader)
        park_next(reader)
    assert [content for _, content in retained] == [bytes(view) for view, _ in retained]
    assert sorted(content for _, content in retained) == sorted(payloads * (between + 2))


def test_waiting_whole_frames_stay_valid_while_more_bytes_arrive() -> None:
    reader = FrameReader(ReceiveArena())
    payloads = [bytes([number]) * 700 for number in range(100)]
    data, position = framed(*payloads), 0
    while position < len(data):  # no frame is taken while one is being executed
        position += feed(reader, data[position : position + 1000])
        reader.settle()
        assert reader.buffered == position
        assert reader.has_frame() == (position >= 704)
    assert drain(reader) == payloads


def test_the_arena_is_replaced_when_retained_frames_fill_it() -> None:
    arena = ReceiveArena(size=framing.ARENA_SIZE)
    reader = FrameReader(arena)
    kept = []
    for number in range(40):
        feed(reader, framed(bytes([number]) * 10_000))
        frame = reader.next_frame()
        assert frame is not None
        kept.append(frame)
        reader.retain()
    assert [frame[0] for frame in kept] == list(range(40))
    assert len({id(frame.obj) for frame in kept}) > 1
