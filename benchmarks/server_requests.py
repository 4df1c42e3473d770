"""The cost of a request in `broker/server`: CPU of the server process and rate, at connections × requests in flight.

The handlers do nothing: `produce` responds to a Produce of one batch, `parked` does so in a task, `fetch` responds with
a slice of a file. So the numbers are those of sockets, framing, codec, dispatch and metrics, without the log.

    python -m benchmarks.server_requests [produce | parked | fetch]
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import uvloop

from odradek.broker.apis.table import ROWS
from odradek.broker.clock import SystemClock
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.handler import Handler
from odradek.broker.server.server import Server
from odradek.protocol import header
from odradek.protocol.api import by_name
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.protocol.schema import Message

FILE_BYTES = 1 << 20


class Case(NamedTuple):
    """The number and size of requests, the number of connections, and the requests in flight on each."""

    connections: int
    in_flight: int
    record_bytes: int
    requests: int


CASES = {
    "produce": [
        Case(1, 1, 170, 40_000),
        Case(8, 8, 170, 200_000),
        Case(64, 8, 170, 200_000),
        Case(4, 5, 16_384, 60_000),
        Case(4, 2, 900_000, 4_000),
    ],
    "parked": [Case(1, 1, 170, 20_000), Case(8, 8, 170, 80_000), Case(64, 8, 170, 80_000), Case(4, 2, 900_000, 4_000)],
    "fetch": [Case(1, 1, 1 << 20, 4_000), Case(4, 1, 1 << 20, 6_000), Case(4, 1, 16_384, 40_000)],
}


class FileSlice:
    """The first bytes of a file."""

    def __init__(self, file: int, length: int) -> None:
        self.position = 0
        self._file = file
        self._length = length

    def __len__(self) -> int:
        return self._length

    def fileno(self) -> int:
        return self._file

    def read(self) -> bytes:
        return os.pread(self._file, self._length, 0)

    def release(self) -> None:
        """Do nothing: the file stays open."""


def produce(_services: object, _context: object, request: ProduceRequest) -> ProduceResponse:
    topics = [
        TopicProduceResponse(t.name, partition_responses=[PartitionProduceResponse(p.index) for p in t.partition_data])
        for t in request.topic_data
    ]
    return ProduceResponse(topics)


async def parked(services: object, context: object, request: ProduceRequest) -> ProduceResponse:
    await asyncio.sleep(0)
    return produce(services, context, request)


def fetch(file: int, _context: object, request: FetchRequest) -> FetchResponse:
    partition = PartitionData(0, records=FileSlice(file, request.max_bytes))
    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])


async def serve(mode: str) -> None:
    loop = asyncio.get_running_loop()
    name = "fetch" if mode == "fetch" else "produce"
    api = by_name(name)
    handle: Any = {"produce": produce, "parked": parked, "fetch": fetch}[mode]
    handler = Handler(api, ROWS[api.key], handle, lambda *_: api.response())
    config = CurrentConfig(BrokerConfig.load(None, {"listeners": "PLAINTEXT://127.0.0.1:0"}))
    with tempfile.TemporaryFile() as file:
        file.write(os.urandom(FILE_BYTES))
        file.flush()
        metrics, clock = Metrics(), SystemClock()

        def in_thread(function: Any) -> Any:
            return loop.run_in_executor(None, function)

        server = Server(config, {api.key: handler}, file.fileno(), metrics, clock, in_thread)
        await server.start()
        gc.freeze()
        print(server.listeners[0].address[1], flush=True)
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        await lines.readline()
        before = time.process_time()
        await lines.readline()
        print(time.process_time() - before, flush=True)
        await server.finish(1)


def request_of(mode: str, size: int) -> bytes:
    message: Message
    if mode == "fetch":
        message = FetchRequest(max_bytes=size, topics=[FetchTopic("t", partitions=[FetchPartition(0)])])
        frame = header.encode_request(header.RequestHeader(1, 12, 1, "benchmark"), message)
    else:
        data = PartitionProduceData(0, bytes(size))
        message = ProduceRequest(acks=1, topic_data=[TopicProduceData("t", partition_data=[data])])
        frame = header.encode_request(header.RequestHeader(0, 9, 1, "benchmark"), message)
    return struct.pack(">i", len(frame)) + bytes(frame)


def ask_once(connected: socket.socket, request: bytes) -> int:
    """Send one request and return the size of the response; all others have the same size."""
    connected.sendall(request)
    (size,) = struct.unpack(">i", connected.recv(4, socket.MSG_WAITALL))
    connected.recv(size, socket.MSG_WAITALL)
    return int(size) + 4


def load(port: int, case: Case, request: bytes, ready: Any) -> float:
    """Keep `in_flight` requests in flight on each connection; return the seconds until all have responses."""
    clients = {}
    size = 0
    polling = select.epoll()
    for _ in range(case.connections):
        connected = socket.create_connection(("127.0.0.1", port))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        size = ask_once(connected, request)
        polling.register(connected, select.EPOLLIN)
        clients[connected.fileno()] = connected
    ready()
    begun = time.perf_counter()
    for connected in clients.values():
        connected.sendall(request * case.in_flight)
    answered, partial, buffer = 0, dict.fromkeys(clients, 0), bytearray(1 << 20)
    while answered < case.requests:
        for descriptor, _ in polling.poll():
            received = clients[descriptor].recv_into(buffer) + partial[descriptor]
            whole, partial[descriptor] = divmod(received, size)
            answered += whole
            if whole:
                clients[descriptor].sendall(request * whole)
    return time.perf_counter() - begun


def measure(mode: str, case: Case) -> None:
    command = [sys.executable, "-m", "benchmarks.server_requests", "--serve", mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = process.stdin

        def tell() -> None:
            stdin.write(b"\n")
            stdin.flush()

        port = int(process.stdout.readline())
        seconds = load(port, case, request_of(mode, case.record_bytes), tell)
        tell()
        cpu = float(process.stdout.readline())
        process.kill()
    gigabytes = case.requests * case.record_bytes / 1e9
    print(
        f"{mode:8}{case.connections:4} × {case.in_flight}{case.record_bytes:10,} B"
        f"{case.requests / seconds:12,.0f} requests/s{cpu / case.requests * 1e6:10.1f} µs CPU a request"
        f"{gigabytes / seconds:8.2f} GB/s{cpu / gigabytes:8.2f} CPU-s a GB",
        flush=True,
    )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--serve"]:
        uvloop.run(serve(arguments[1]))
        return
    for mode in arguments or CASES:
        for case in CASES[mode]:
            measure(mode, case)


if __name__ == "__main__":
    main(sys.argv[1:])
