"""Connections with TLS: requests and responses, in records of any size, in both directions at once."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.request.context import RequestContext
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.broker.security.tls.settings import ClientAuth
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.effort import some
from tests.peers.availability import program
from tests.server.securing import AUTHORITY, connect, secured
from tests.server.serving import (
    FETCH_VERSION,
    METADATA_VERSION,
    PRODUCE_VERSION,
    Handlers,
    Serve,
    Serving,
    Slice,
    default_handlers,
    framed_request,
    lines_of,
)
from tests.server.test_connection import produce, produced, records_of
from tests.server.tls_client import Pieces, whole


def bytewise(data: bytes) -> Iterator[bytes]:
    for position in range(len(data)):
        yield data[position : position + 1]


def raggedly(data: bytes) -> Iterator[bytes]:
    source, position = random.Random(len(data)), 0
    while position < len(data):
        size = source.choice([1, 2, 5, 6, 100, 5000, 40_000])
        yield data[position : position + size]
        position += size


async def test_a_request_is_answered(serve: Serve) -> None:
    client = await connect(await serve(tls=secured()))
    assert (await client.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"


@pytest.mark.parametrize("pieces", [bytewise, raggedly, whole])
@pytest.mark.parametrize("record", [1, 7, 1000, 16 * 1024])
async def test_records_may_be_split_anyhow(serve: Serve, pieces: Pieces, record: int) -> None:
    handlers, data = default_handlers(), random.Random(record).randbytes(20_000 if record > 100 else 700)
    received: list[bytes] = []

    def handle(context: object, request: object) -> object:
        received.append(bytes(records_of(request)))
        return produced(1)

    handlers.on("Produce", handle)
    client = await connect(await serve(handlers, tls=secured()), pieces=pieces)
    for _ in range(2):
        await client.ask("Produce", PRODUCE_VERSION, produce(data), record)
    assert received == [data, data]


async def test_many_requests_in_one_record_are_all_executed(serve: Serve) -> None:
    client = await connect(await serve(tls=secured()))
    await client.send(framed_request("Metadata", METADATA_VERSION, MetadataRequest()) * 300)
    for _ in range(300):
        await client.receive_frame()


async def test_a_large_request_is_received_whole(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Produce", lambda context, request: produced(hash(bytes(records_of(request)))))
    client = await connect(await serve(handlers, tls=secured()))
    for size in (3_000_000, 10, 1_000_000):
        data = random.Random(size).randbytes(size)
        response = await client.ask("Produce", PRODUCE_VERSION, produce(data))
        assert response.responses[0].partition_responses[0].base_offset == hash(data)


def fetching(path: Path, sizes: list[int]) -> Handlers:
    """Answer each Fetch with slices of a file, one after the other."""

    def handle(context: object, request: FetchRequest) -> FetchResponse:
        partitions, position = [], 7
        for number, size in enumerate(sizes):
            partitions.append(PartitionData(number, records=Slice(path, position, size)))
            position += size
        return FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])

    handlers = default_handlers()
    handlers.on("Fetch", handle)
    return handlers


@pytest.mark.parametrize("receive_buffer", [None, 4096])
async def test_slices_of_files_arrive_byte_for_byte_and_never_by_sendfile(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receive_buffer: int | None
) -> None:
    def sendfile(*_: object) -> int:
        raise AssertionError("a file was sent in the clear")

    monkeypatch.setattr(os, "sendfile", sendfile)
    path, sizes = tmp_path / "log", [100, 1024 * 1024, 0, 40_000, 1_500_000]
    path.write_bytes(random.Random(5).randbytes(4_000_000))
    client = await connect(await serve(fetching(path, sizes), tls=secured()), receive_buffer=receive_buffer)
    for _ in range(2):
        response = await client.ask("Fetch", FETCH_VERSION, FetchRequest())
        received = b"".join(bytes(each.records) for each in response.responses[0].partitions)
        assert received == path.read_bytes()[7 : 7 + sum(sizes)]


class SClient:
    """`openssl s_client` as a process, whose pipes threads read and write."""

    def __init__(self, serving: Serving, *options: str) -> None:
        host, port = serving.server.listeners[0].address
        self.process = subprocess.Popen(
            [program("openssl", "openssl"), "s_client", "-connect", f"{host}:{port}", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        await asyncio.to_thread(self.process.stdin.write, data)

    def has_read(self) -> bool:
        """Whether it has read all that was written: it takes what comes after a command for a part of it."""
        assert self.process.stdin is not None
        return fcntl.ioctl(self.process.stdin, termios.FIONREAD, bytes(4)) == bytes(4)

    async def read(self, count: int) -> bytes:
        def read() -> bytes:
            assert self.process.stdout is not None
            data = b""
            while len(data) < count:
                piece = self.process.stdout.read(count - len(data))
                if not piece:
                    raise EOFError(f"s_client ended with {self.process.wait()}")
                data += piece
            return data

        return await asyncio.to_thread(read)

    async def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.read(4))
        return await self.read(size)

    async def end(self, *, kill: bool = True) -> None:
        if kill:
            self.process.kill()
        await asyncio.to_thread(self.process.communicate)


@pytest.mark.process
async def test_a_client_that_asks_for_small_records_gets_them(serve: Serve, tmp_path: Path) -> None:
    """The extension max_fragment_length: OpenSSL then sends fewer bytes than it is given."""
    path = tmp_path / "log"
    path.write_bytes(random.Random(6).randbytes(1_000_000))
    client = SClient(await serve(fetching(path, [400_000]), tls=secured()), "-quiet", "-maxfraglen", "512")
    await client.write(framed_request("Fetch", FETCH_VERSION, FetchRequest()))
    assert path.read_bytes()[7:400_007] in await client.read_frame()
    await client.end()


async def test_a_client_that_does_not_read_is_not_read_either_and_loses_nothing(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(random.Random(8).randbytes(1_000_000))
    serving = await serve(fetching(path, [900_000]), tls=secured())
    client = await connect(serving, receive_buffer=4096)
    await client.send(framed_request("Fetch", FETCH_VERSION, FetchRequest()) * 20)
    await serving.until(lambda: len(serving.connections) == 1)
    connection = next(iter(serving.connections))
    await serving.until(lambda: connection.unsent > 0)
    for _ in range(20):
        frame = await client.receive_frame()
        assert path.read_bytes()[7:900_007] in frame


async def test_what_openssl_holds_is_executed_although_nothing_more_arrives(serve: Serve) -> None:
    """Requests behind a long poll fill the buffer, reading stops, and the rest of a record is decrypted already."""
    handlers, parked = default_handlers(), asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    serving = await serve(handlers, tls=secured())
    client = await connect(serving)
    one = framed_request("Metadata", METADATA_VERSION, MetadataRequest())
    count = 600_000 // len(one)
    await client.send(framed_request("Fetch", FETCH_VERSION, FetchRequest()) + one * count)
    await serving.until(lambda: len(serving.connections) == 1)
    connection = next(iter(serving.connections))
    await serving.until(lambda: connection.is_busy and not connection.is_reading)
    parked.set_result(FetchResponse())
    for _ in range(count + 1):
        await client.receive_frame()


async def test_the_principal_is_that_of_the_certificate(serve: Serve) -> None:
    handlers, principals = default_handlers(), []

    def handle(context: RequestContext, request: object) -> MetadataResponse:
        principals.append(context.connection.principal)
        return MetadataResponse()

    handlers.on("Metadata", handle)
    serving = await serve(handlers, tls=secured(client_auth=ClientAuth.REQUESTED))
    for issued in (AUTHORITY.client("alice"), None, AUTHORITY.client("bob, the builder")):
        await (await connect(serving, issued)).ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert principals == [
        Principal("User", "CN=alice"),
        ANONYMOUS,
        Principal("User", "CN=bob\\, the builder"),
    ]


@pytest.mark.parametrize("spoil", some(["close", "reset", "garbage", "half a record", "an alert"]))
async def test_a_connection_that_breaks_off_costs_one_line_at_most(
    serve: Serve, caplog: pytest.LogCaptureFixture, spoil: str
) -> None:
    serving = await serve(tls=secured())
    client = await connect(serving)
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    match spoil:
        case "close":
            client.client.close()
        case "reset":
            client.client.reset()
        case "garbage":
            await client.client.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        case "half a record":
            await client.client.send(b"\x17\x03\x03\x40\x00" + bytes(50))
            client.client.close()
        case _:
            await client.client.send(b"\x15\x03\x03\x00\x02\x02\x28")
    await serving.until(lambda: len(serving.connections) == 0)
    lines = [line for line in lines_of(caplog) if "SCRAM" not in line]
    assert len(lines) == (spoil in ("garbage", "an alert")), lines
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.process
@pytest.mark.parametrize("command", [b"K\n", b"k\n"])
async def test_key_updates_are_served(serve: Serve, command: bytes) -> None:
    """The commands of s_client: K asks for an update of both keys, k updates its own."""
    serving = await serve(tls=secured())
    client = SClient(serving, "-tls1_3", "-brief")
    for _ in range(3):
        await client.write(command)
        await serving.until(client.has_read)
        await client.write(framed_request("Metadata", METADATA_VERSION, MetadataRequest()))
        assert b"test" in await client.read_frame()
    await client.end()


@pytest.mark.process
async def test_a_renegotiation_is_refused(serve: Serve) -> None:
    """The command R of s_client: it gives up when the server does not agree."""
    serving = await serve(tls=secured())
    client = SClient(serving, "-tls1_2", "-brief")
    other = await connect(serving)
    await serving.until(lambda: len(serving.connections) == 2)
    await client.write(b"R\n")
    await client.end(kill=False)
    await serving.until(lambda: len(serving.connections) == 1)
    await other.ask("Metadata", METADATA_VERSION, MetadataRequest())
