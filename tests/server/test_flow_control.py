from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.server import page_cache
from odradek.broker.server.flow_control import JOIN_LIMIT, TURN_BYTES, Outbox
from odradek.broker.server.transport import PlaintextTransport
from tests.server.serving import Slice


class Pair:
    """An outbox, and the peer that reads its bytes."""

    def __init__(self, buffer_size: int | None) -> None:
        ours, self.peer = socket.socketpair()
        if buffer_size is not None:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_size)
        self.peer.setblocking(False)
        self.loop = asyncio.get_running_loop()
        self.transport = PlaintextTransport(ours)
        self.errors: list[BaseException] = []
        self.progress = 0
        self.in_thread: list[Callable[[], None]] = []
        self.reading: asyncio.Future[None] | None = None  # in place of a thread
        self.outbox = Outbox(self.transport, self.loop, self._run_in_thread, self._on_progress, self.errors.append)

    def _on_progress(self) -> None:
        self.progress += 1

    def _run_in_thread(self, function: Callable[[], None]) -> asyncio.Future[None]:
        self.in_thread.append(function)
        return self.reading or self.loop.run_in_executor(None, function)

    async def receive(self, count: int, piece: int = 1 << 16) -> bytes:
        data = bytearray()
        while len(data) < count:
            received = await self.loop.sock_recv(self.peer, min(piece, count - len(data)))
            assert received
            data += received
        return bytes(data)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - nothing is slept through
                await asyncio.sleep(0)

    def close(self) -> None:
        self.outbox.close()
        self.transport.close()
        self.peer.close()


@pytest.fixture
async def pairs() -> Iterator[Callable[..., Pair]]:
    opened: list[Pair] = []

    def open_pair(buffer_size: int | None = 4096) -> Pair:
        opened.append(Pair(buffer_size))
        return opened[-1]

    yield open_pair
    for pair in opened:
        pair.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(range(251)) * 20_000)
    return path


def content(path: Path, of: Slice) -> bytes:
    return path.read_bytes()[of.position : of.position + of.length]


async def test_bytes_that_fit_are_sent_at_once(pairs: Callable[..., Pair]) -> None:
    pair = pairs()
    pair.outbox.put(bytearray(b"hello"))
    assert pair.peer.recv(10) == b"hello"
    assert pair.outbox.unsent == 0


async def test_bytes_that_do_not_fit_follow_in_order_when_there_is_room(pairs: Callable[..., Pair]) -> None:
    pair = pairs()
    parts = [bytes([number]) * size for number, size in enumerate([100_000, 1, 70_000, 0, 300, 300, 300_000])]
    for part in parts:
        pair.outbox.put(bytearray(part))
    whole = b"".join(parts)
    assert 0 < pair.outbox.unsent < len(whole)
    assert await pair.receive(len(whole)) == whole
    await pair.until(lambda: pair.outbox.unsent == 0)
    assert pair.progress > 1
    assert pair.outbox.accepted == len(whole)


@pytest.mark.parametrize("piece", [100, 5_000, 1 << 20])
async def test_file_slices_are_sent_at_their_positions(pairs: Callable[..., Pair], file: Path, piece: int) -> None:
    pair = pairs()
    lengths = [0, 1, 170, JOIN_LIMIT - 1, JOIN_LIMIT, JOIN_LIMIT + 1, 150_000, 5, 90_000]
    slices = [Slice(file, 1000 * number, length) for number, length in enumerate(lengths)]
    out, expected, splices = bytearray(), bytearray(), []
    for number, of in enumerate(slices):
        text = b"<%d>" % number
        out += text
        splices.append((len(out), of))
        expected += text + content(file, of)
    out += b"<end>"
    expected += b"<end>"
    pair.outbox.put(out, splices)
    pair.outbox.put(bytearray(b"next"))
    assert await pair.receive(len(expected) + 4, piece) == bytes(expected) + b"next"
    await pair.until(lambda: pair.outbox.unsent == 0)
    assert pair.outbox.accepted == len(expected) + 4
    assert all(of.is_released for of in slices)


async def test_two_slices_at_one_position_follow_each_other(pairs: Callable[..., Pair], file: Path) -> None:
    pair = pairs()
    slices = [Slice(file, 0, 50_000), Slice(file, 50_000, 50_000)]
    pair.outbox.put(bytearray(b"ab"), [(1, slices[0]), (1, slices[1])])
    assert await pair.receive(100_002) == b"a" + content(file, slices[0]) + content(file, slices[1]) + b"b"


async def test_a_turn_sends_a_bounded_amount_although_the_kernel_would_take_more(
    pairs: Callable[..., Pair], file: Path
) -> None:
    pair = pairs(8 * TURN_BYTES)
    of = Slice(file, 0, 3 * TURN_BYTES)
    pair.outbox.put(bytearray(b"head"), [(4, of)])
    assert pair.outbox.accepted - pair.outbox.unsent <= TURN_BYTES
    assert await pair.receive(len(of) + 4) == b"head" + content(file, of)


async def test_closing_releases_what_is_unsent(pairs: Callable[..., Pair], file: Path) -> None:
    pair = pairs()
    slices = [Slice(file, 0, 1_000_000) for _ in range(3)]
    pair.outbox.put(bytearray(b"x"), [(1, of) for of in slices])
    assert not slices[0].is_released
    pair.outbox.close()
    assert all(of.is_released for of in slices)
    assert pair.outbox.unsent == 0


async def test_a_disconnect_while_a_slice_is_sent_is_one_error(pairs: Callable[..., Pair], file: Path) -> None:
    pair = pairs()
    of = Slice(file, 0, 1_000_000)
    pair.outbox.put(bytearray(b"x"), [(1, of)])
    pair.peer.close()
    await pair.until(lambda: bool(pair.errors))
    assert isinstance(pair.errors[0], (BrokenPipeError, ConnectionResetError))
    pair.outbox.close()
    assert of.is_released
    assert len(pair.errors) == 1


@pytest.mark.parametrize("length", [100, 100_000])
async def test_a_file_that_is_shorter_than_its_slice_is_an_error_and_never_a_wrong_frame(
    pairs: Callable[..., Pair], tmp_path: Path, length: int
) -> None:
    path = tmp_path / "short.log"
    path.write_bytes(bytes(length - 1))
    pair = pairs(1 << 20)
    of = Slice(path, 0, length)
    other = Slice(path, 0, 50)
    try:
        pair.outbox.put(bytearray(b"x"), [(1, of), (1, other)])
    except OSError as error:
        pair.errors.append(error)
    await pair.until(lambda: bool(pair.errors))
    assert "shorter than its slice" in str(pair.errors[0])
    pair.outbox.close()
    assert of.is_released
    assert other.is_released


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that has no page of any file in memory until it was read, as with a slow disk.

    The real one may have a page by the time of the next line, because a probe starts read-ahead.
    """
    page, in_memory = 4096, set[int]()
    preadv, pread = os.preadv, os.pread

    def preadv_of_slow_disk(file: int, buffers: list[bytearray], offset: int, flags: int = 0) -> int:
        if offset // page not in in_memory:
            raise BlockingIOError
        return preadv(file, buffers, offset, flags)

    def pread_of_slow_disk(file: int, count: int, offset: int) -> bytes:
        in_memory.update(range(offset // page, (offset + count - 1) // page + 1))
        return pread(file, count, offset)

    monkeypatch.setattr(os, "preadv", preadv_of_slow_disk)
    monkeypatch.setattr(os, "pread", pread_of_slow_disk)


def drop_pages(file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.mark.usefixtures("cold")
async def test_a_slice_that_is_not_in_memory_is_read_by_a_thread_first(pairs: Callable[..., Pair], file: Path) -> None:
    pair = pairs(1 << 20)
    slices = [Slice(file, 0, 2_000_000), Slice(file, 2_000_000, 2_000_000)]
    pair.outbox.put(bytearray(b"ab"), [(1, slices[0]), (1, slices[1])])
    pair.outbox.put(bytearray(b"c"))
    assert len(pair.in_thread) == 1
    assert await pair.receive(4_000_003) == b"a" + content(file, slices[0]) + content(file, slices[1]) + b"bc"
    assert all(of.is_released for of in slices)


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("unexpected")])
async def test_a_slice_that_cannot_be_read_into_memory_is_an_error(
    pairs: Callable[..., Pair], file: Path, error: Exception
) -> None:
    pair = pairs(1 << 20)
    loading: asyncio.Future[None] = pair.loop.create_future()
    pair.reading = loading
    of = Slice(file, 0, 2_000_000)
    pair.outbox.put(bytearray(b"a"), [(1, of)])
    loading.set_exception(error)
    await pair.until(lambda: bool(pair.errors))
    pair.outbox.close()
    assert pair.errors == [error]
    assert of.is_released


@pytest.mark.usefixtures("cold")
async def test_a_slice_that_a_thread_reads_is_released_only_afterwards(pairs: Callable[..., Pair], file: Path) -> None:
    pair = pairs(1 << 20)
    of, other = Slice(file, 0, 2_000_000), Slice(file, 0, 1_000_000)
    pair.outbox.put(bytearray(b"a"), [(1, of), (1, other)])
    assert len(pair.in_thread) == 1
    pair.outbox.close()
    assert other.is_released
    assert not of.is_released
    await pair.until(lambda: of.is_released)
    assert not pair.errors


def test_every_part_of_a_file_counts_as_cached_after_it_was_loaded(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        for _ in range(1000):  # some are kept: pages that another processor has just worked on, files in memory
            drop_pages(file)
            if not page_cache.is_cached(descriptor, 1_000_000, 1):
                break
        page_cache.load(descriptor, 1_000_000, 500_000)
        assert page_cache.is_cached(descriptor, 1_000_000, 500_000)
    finally:
        os.close(descriptor)
