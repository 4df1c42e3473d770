"""The transport with TLS between two real OpenSSL sockets: every byte arrives once and in order, however it is sent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import ssl
import termios
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.security.tls.context import make_context
from odradek.broker.security.tls.settings import TlsSettings
from odradek.broker.server.tls_stream import LEAST_FILL, TlsStream
from odradek.broker.server.tls_transport import RECORD, RECORDS_AT_ONCE, TlsTransport
from odradek.broker.server.transport import BlockedBySendingError
from odradek.protocol.errors import RemoteProtocolError
from tests.effort import cases
from tests.peers.certificates import Authority
from tests.security.tls.handshakes import client_context
from tests.server.key_updates import send_key_update

Sockets = tuple[socket.socket, socket.socket]


def tcp_pair() -> Sockets:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server.accept()[0], theirs


class Pair:
    """A transport, and the client's end of its connection. `received` is what the client has read."""

    def __init__(self, version: str, buffer_size: int | None, make: Callable[[], Sockets] = socket.socketpair) -> None:
        authority = Authority()
        issued = authority.server()
        settings = TlsSettings(
            keystore_type="PEM",
            keystore_key=issued.key_pem(),
            keystore_certificate_chain=issued.chain_pem,
            enabled_protocols=(version,),
        )
        ours, theirs = make()
        if buffer_size is not None:
            for each in (ours, theirs):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_size)
        for each in (ours, theirs):
            each.setblocking(False)
        self.stream = TlsStream(ours, make_context(settings))
        self.client = client_context(authority).wrap_socket(
            theirs, server_hostname="localhost", do_handshake_on_connect=False
        )
        unfinished = [self.client.do_handshake, self.stream.shake_hands]
        while unfinished:
            for each in tuple(unfinished):
                try:
                    each()
                    unfinished.remove(each)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
        self.transport = TlsTransport(self.stream)
        self.received = bytearray()

    def read(self, limit: int = 1 << 24) -> None:
        """Let the client read what has arrived."""
        try:
            while len(self.received) < limit and (data := self.client.recv(RECORD)):
                self.received += data
        except ssl.SSLWantReadError:
            pass

    def next_bytes(self) -> bytes:
        """Wait for the next bytes that the transport receives."""
        room = memoryview(bytearray(4096))
        while True:
            with contextlib.suppress(BlockingIOError):
                return bytes(room[: self.transport.recv_into(room)])

    def all_of(self, send: Callable[[int], int], size: int) -> None:
        """Send `size` bytes by `send(position)`, while the client reads."""
        position = 0
        while position < size:
            try:
                sent = send(position)
                assert sent > 0
                position += sent
            except BlockingIOError:
                self.read()

    def close(self) -> None:
        self.transport.close()
        self.client.close()


@pytest.fixture(params=["TLSv1.2", "TLSv1.3"])
def pairs(request: pytest.FixtureRequest) -> Iterator[Callable[..., Pair]]:
    opened: list[Pair] = []

    def open_pair(buffer_size: int | None = 8192) -> Pair:
        opened.append(Pair(request.param, buffer_size))
        return opened[-1]

    yield open_pair
    for pair in opened:
        pair.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(random.Random(1).randbytes(3_000_000))
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_bytes_and_slices_of_a_file_arrive_in_order_however_often_the_kernel_is_full(
    pairs: Callable[..., Pair], log: int
) -> None:
    source = random.Random(2)
    for _ in range(cases(10)):
        pair = pairs()
        transport, expected = pair.transport, bytearray()
        for _ in range(20):
            size = source.choice([1, 5, 300, 5000, RECORD - 1, RECORD, RECORD + 1, 100_000])
            data = source.randbytes(size)
            kind = source.choice(["send", "more", "file", "more and file"])
            if "more" in kind:
                pair.all_of(partial(_send, transport.send_more, data), size)
                expected += data
            if "file" in kind:
                start, count = source.randrange(2_000_000), source.choice([1, RECORD, 200_000, 900_000])
                pair.all_of(partial(_send_file, transport, log, start, count), count)
                expected += os.pread(log, count, start)
            if kind in ("send", "more"):
                data = data[::-1]
                pair.all_of(partial(_send, transport.send, data), size)
                expected += data
        pair.read()
        assert pair.received == expected


def _send(send: Callable[[memoryview], int], data: bytes, position: int) -> int:
    return send(memoryview(data)[position:])


def _send_file(transport: TlsTransport, file: int, start: int, count: int, position: int) -> int:
    return transport.send_file(file, start + position, count - position)


def test_kept_bytes_and_the_file_after_them_are_one_record(pairs: Callable[..., Pair], log: int) -> None:
    pair = pairs(None)
    assert pair.transport.send_more(b"header") == 6
    pair.read()
    assert pair.received == b""
    assert pair.transport.send_file(log, 0, 100) == 100
    assert pair.client.recv(RECORD) == b"header" + os.pread(log, 100, 0)


def test_a_file_that_has_ended_is_reported(pairs: Callable[..., Pair], log: int) -> None:
    assert pairs().transport.send_file(log, 3_000_000, 10) == 0


def test_no_bytes_of_a_file_reach_the_kernel_in_the_clear(pairs: Callable[..., Pair], tmp_path: Path) -> None:
    secret = b"in the clear " * 1000
    (tmp_path / "log").write_bytes(secret)
    pair = pairs(None)
    with (tmp_path / "log").open("rb") as file:
        pair.transport.send_file(file.fileno(), 0, len(secret))
    pair.transport.send(secret)
    sent = os.read(pair.client.fileno(), 1 << 20)
    assert len(sent) > 2 * len(secret)
    assert b"clear" not in sent


def test_receiving_fills_the_buffer_over_many_records(pairs: Callable[..., Pair]) -> None:
    pair = pairs(1 << 20)
    data = random.Random(3).randbytes(200_000)
    for start in range(0, len(data), 4000):
        pair.client.send(data[start : start + 4000])
    room = memoryview(bytearray(150_500))
    assert pair.transport.recv_into(room) == 150_500
    assert pair.transport.has_pending()  # the rest of a record is in OpenSSL: the descriptor does not say so
    rest = memoryview(bytearray(100_000))
    assert pair.transport.recv_into(rest) == 49_500
    assert bytes(room) + bytes(rest[:49_500]) == data
    assert not pair.transport.has_pending()
    with pytest.raises(BlockingIOError):
        pair.transport.recv_into(rest)


def test_the_end_of_the_stream_follows_the_bytes_before_it(pairs: Callable[..., Pair]) -> None:
    pair = pairs()
    pair.client.send(b"last")
    pair.client.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):  # the server's tickets: closing with something unread is a reset
        pair.client.recv(1)
    pair.client.close()
    room = memoryview(bytearray(100))
    assert pair.transport.recv_into(room) == 4
    assert pair.transport.recv_into(room) == 0
    assert pair.transport.recv_into(room) == 0


def test_bytes_that_are_not_tls_end_the_connection_after_those_before(pairs: Callable[..., Pair]) -> None:
    pair = pairs()
    pair.client.send(b"good")
    os.write(pair.client.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
    room = memoryview(bytearray(100))
    assert pair.transport.recv_into(room) == 4
    assert pair.transport.has_pending()
    with pytest.raises(RemoteProtocolError, match=r"^TLS: "):
        pair.transport.recv_into(room)


def test_sending_to_a_peer_that_is_gone_is_a_lost_connection(pairs: Callable[..., Pair]) -> None:
    pair = pairs()
    pair.client.close()
    with pytest.raises(ConnectionError):
        pair.transport.send(bytes(100_000))


class Renegotiating:
    """OpenSSL's state of a connection that a client of Python's `ssl` cannot cause."""

    def __init__(self, stream: TlsStream) -> None:
        self.read, self.pending = stream.tls.read, stream.tls.pending

    def write(self, data: bytes) -> int:
        raise ssl.SSLWantReadError


def test_a_renegotiation_while_sending_ends_the_connection(pairs: Callable[..., Pair]) -> None:
    stream = pairs().stream
    stream.tls = Renegotiating(stream)  # type: ignore[assignment]
    with pytest.raises(RemoteProtocolError, match="renegotiates"):
        TlsTransport(stream).send(b"x")


@pytest.fixture
def of_tls_1_3() -> Iterator[Pair]:
    pair = Pair("TLSv1.3", None, tcp_pair)
    yield pair
    pair.close()


def test_key_updates_are_read_a_few_at_a_time(of_tls_1_3: Pair) -> None:
    pair, room = of_tls_1_3, memoryview(bytearray(4096))
    while send_key_update(pair.client, is_answered=False):
        pass
    before = _unread(pair.stream.socket)
    assert before > LEAST_FILL

    with pytest.raises(BlockingIOError):
        pair.transport.recv_into(room)
    assert _unread(pair.stream.socket) >= before - LEAST_FILL


def test_a_key_update_is_answered_between_two_responses(of_tls_1_3: Pair) -> None:
    pair = of_tls_1_3
    data = random.Random(4).randbytes(1 << 23)
    sent = pair.transport.send(data)
    assert sent < len(data)
    for _ in range(100):
        assert send_key_update(pair.client, is_answered=True)
    pair.client.send(b"end")
    assert pair.next_bytes() == b"end"

    pair.all_of(lambda position: pair.transport.send(data[sent + position :]), len(data) - sent)
    pair.read()
    assert pair.received == data


def test_what_tls_must_send_first_waits_for_room(pairs: Callable[..., Pair]) -> None:
    """OpenSSL answers a renegotiation of TLS 1.2 with an alert; a client of Python's `ssl` cannot cause it."""
    pair, room = pairs(), memoryview(bytearray(4096))
    with contextlib.suppress(BlockingIOError):
        while pair.stream.socket.send(bytes(1 << 16)):
            pass
    pair.stream.outgoing.write(b"an alert")
    pair.client.send(b"some")
    assert room[: pair.transport.recv_into(room)] == b"some"
    assert pair.transport.has_pending()
    pair.client.send(b"more")
    with pytest.raises(BlockedBySendingError):
        pair.transport.recv_into(room)

    while not pair.stream.flush():
        os.read(pair.client.fileno(), 1 << 16)
    assert room[: pair.transport.recv_into(room)] == b"more"
    assert not pair.transport.has_pending()


def _unread(connected: socket.socket) -> int:
    """Return the number of received bytes that are in the kernel."""
    count = array("i", [0])
    fcntl.ioctl(connected, termios.FIONREAD, count)
    return count[0]


def test_a_reset_discards_what_was_sent(pairs: Callable[..., Pair]) -> None:
    pair = pairs()
    pair.transport.reset()
    assert pair.stream.socket.fileno() == -1


def test_records_of_one_byte_are_read_a_few_at_a_time(pairs: Callable[..., Pair]) -> None:
    pair = pairs(1 << 20)
    for _ in range(3 * RECORDS_AT_ONCE):
        pair.client.send(b"x")
    room = memoryview(bytearray(4096))

    assert [pair.transport.recv_into(room) for _ in range(3)] == [RECORDS_AT_ONCE] * 3
