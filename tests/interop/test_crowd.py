"""Idle and slow connections: they do not delay other clients and cost the broker little."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from odradek.protocol.header import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server

FETCH, FETCH_VERSION = 1, 4
MEBIBYTE = 1 << 20
IDLE = 500
SLOWEST = 20.0
"""Seconds in which a client must start, write a batch and stop beside the others; alone it takes a fifth of one.

A client that they block would wait for ever.
"""


def connect(server: Server, receive_buffer: int = 0) -> socket.socket:
    peer = socket.socket()
    if receive_buffer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    peer.settimeout(30)
    peer.connect((server.host, server.port))
    return peer


def frame(body: bytes | bytearray) -> bytes:
    return len(body).to_bytes(4) + body


def receive(peer: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = peer.recv(size - len(received))
        assert part, "the broker closed the connection"
        received += part
    return bytes(received)


def receive_frame(peer: socket.socket) -> bytes:
    return receive(peer, int.from_bytes(receive(peer, 4)))


def fetch(topic: str, correlation_id: int, size: int) -> bytes:
    """A request for up to `size` bytes from the start of the topic."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    request = FetchRequest(max_bytes=size, topics=[FetchTopic(topic=topic, partitions=[partition])])
    return frame(encode_request(RequestHeader(FETCH, FETCH_VERSION, correlation_id, "slow"), request))


def seconds_of_each_batch(server: Server, topic: str, batches: int) -> list[float]:
    """Write and read one batch after the other; return the time of each."""
    client, taken = Confluent(), []
    for _ in range(batches):
        began = time.perf_counter()
        client.produce(server.bootstrap, topic, [Outgoing(b"k", b"v" * 100)] * 10)
        taken.append(time.perf_counter() - began)
    return taken


@contextmanager
def crowd(server: Server, size: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(server)) for _ in range(size)]


def test_five_hundred_idle_connections_do_not_delay_others(server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"first")])
    with crowd(server, IDLE) as peers:
        for number, peer in enumerate(peers[::2]):
            peer.sendall(fetch(topic, number, 100))
            assert int.from_bytes(receive_frame(peer)[:4]) == number
        assert max(seconds_of_each_batch(server, topic, 20)) < SLOWEST
        for peer in peers:
            peer.setblocking(False)
            try:
                assert peer.recv(1) == b"", "nobody is sent what it did not ask for"
            except BlockingIOError:
                continue
            raise AssertionError("an idle connection was closed")


def test_a_slow_reader_does_not_delay_others(server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, bytes(500_000)) for _ in range(8)])
    requests = 200
    memory = server.resident_bytes()
    with connect(server, receive_buffer=8192) as slow:
        slow.sendall(b"".join(fetch(topic, number, MEBIBYTE) for number in range(requests)))
        assert max(seconds_of_each_batch(server, f"{topic}-other", 20)) < SLOWEST
        if server.kind == "odradek":  # the heap of a Java process grows until it is full
            assert server.resident_bytes() - memory < 32 * MEBIBYTE, "unsent answers are not kept in memory"
        for number in range(requests // 10):  # it reads again: the responses are complete and in order
            correlation_id, answer = decode_response(FETCH, FETCH_VERSION, receive_frame(slow))
            assert isinstance(answer, FetchResponse)
            assert correlation_id == number
            assert len(answer.responses[0].partitions[0].records or b"") > MEBIBYTE // 2


def test_many_clients_at_once_lose_no_record(server: Server, make_topic: Callable[..., str]) -> None:
    writers, each = 16, 500
    topic = make_topic(partitions=4)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            records = [Outgoing(None, f"{number}-{i}".encode()) for i in range(each)]
            Confluent().produce(server.bootstrap, topic, records, partition=number % 4, codec="lz4", idempotent=True)
        except BaseException as failure:  # noqa: BLE001 - carried to the test's own thread
            failures.append(failure)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    for partition in range(4):
        records = Confluent().consume(server.bootstrap, topic, partition=partition, count=writers // 4 * each)
        values = [record.value for record in records]
        assert len(set(values)) == len(values)
        for number in range(partition, writers, 4):
            of_one = [value for value in values if value is not None and value.startswith(f"{number}-".encode())]
            assert of_one == [f"{number}-{i}".encode() for i in range(each)]
