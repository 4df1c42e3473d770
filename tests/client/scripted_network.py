"""The simulated side of the client's Network seam: connections in memory to scripted brokers.

Each buffer that a client passes to a transport is stored with a copy of its content; `check_buffers` fails if a buffer
was changed afterwards. Responses reach the client in pieces of `piece_size` bytes.
"""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from typing import Any

from odradek.client.config import Address
from odradek.protocol.api import by_key
from odradek.protocol.codec import decode
from odradek.protocol.errors import ErrorCode, ProtocolError
from odradek.protocol.header import API_VERSIONS_KEY, decode_request_header, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.schema import ZERO_UUID, Message
from tests.client.scripted_broker import DROP, Broker, Script
from tests.client.scripted_coordinator import TransactionCoordinator
from tests.client.scripted_groups import GroupCoordinator
from tests.client.scripted_log import Log

_SIZE = struct.Struct(">i")


class ScriptedNetwork:
    """A cluster in memory: brokers by node id, logs by topic and partition."""

    def __init__(
        self,
        brokers: int = 1,
        *,
        piece_size: int = 1 << 20,
        with_topic_ids: bool = True,
        with_sessions: bool = False,
        transaction_version: int | None = None,
        groups: GroupCoordinator | None = None,
    ) -> None:
        self.groups = groups
        self.disturbance: Script | None = None  # handles every request that no script of its broker handles
        self.coordinator = None if transaction_version is None else TransactionCoordinator(transaction_version)
        self.with_sessions = with_sessions
        self.brokers = {node_id: Broker(self, node_id) for node_id in range(1, brokers + 1)}
        self.logs: dict[tuple[str, int], Log] = {}
        self.aliases: dict[Address, Broker] = {}  # addresses of brokers that they do not advertise
        self.unreachable: set[Address] = set()
        self.piece_size = piece_size
        self.written: list[tuple[Any, bytes]] = []
        self._with_topic_ids = with_topic_ids
        self._lives: Counter[str] = Counter()  # how often each topic was created
        self._producer_ids = 1000

    @property
    def bootstrap(self) -> list[str]:
        return [str(broker.address) for broker in self.brokers.values()]

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        advertised = {broker.address: broker for broker in self.brokers.values()}
        broker = advertised.get(address) or self.aliases.get(address)
        if broker is None or not broker.is_up or address in self.unreachable:
            raise ConnectionRefusedError(111, "Connection refused")
        transport = MemoryTransport(broker, protocol, address)
        protocol.connection_made(transport)
        return transport

    def create(self, topic: str, partitions: int = 1) -> list[Log]:
        """Create a topic, or recreate it; partition i is led by broker i mod n, counted from 1."""
        self._lives[topic] += 1
        for log in self.partitions(topic):
            del self.logs[topic, log.partition]
        return self.add_partitions(topic, partitions)

    def add_partitions(self, topic: str, count: int) -> list[Log]:
        """Extend a topic to so many partitions."""
        for partition in range(len(self.partitions(topic)), count):
            self.logs[topic, partition] = Log(topic, partition, partition % len(self.brokers) + 1)
        if self.groups is not None:
            names = dict.fromkeys(name for name, _ in self.logs)
            self.groups.topics_changed({name: (self.topic_id(name), len(self.partitions(name))) for name in names})
        return self.partitions(topic)

    def partitions(self, topic: str) -> list[Log]:
        return [log for log in self.logs.values() if log.topic == topic]

    def move(self, log: Log, to: int) -> None:
        """Move the leadership to another broker, with the next epoch."""
        log.leader = to
        log.leader_epoch += 1

    def topic_id(self, topic: str) -> bytes:
        if not self._with_topic_ids:
            return ZERO_UUID
        return topic.encode().ljust(15, b"\0")[:15] + bytes([self._lives[topic]])

    def topic_name(self, topic_id: bytes) -> str:
        return next((topic for topic, _ in self.logs if self.topic_id(topic) == topic_id), "")

    def next_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids

    def check_buffers(self) -> None:
        for buffer, copy in self.written:
            assert bytes(buffer) == copy, "a buffer was changed after it had been handed to the transport"


class MemoryTransport(asyncio.Transport):
    """A connection: the client writes into it, and a task responds for the broker, one request after the other."""

    def __init__(self, broker: Broker, protocol: asyncio.BufferedProtocol, dialled: Address) -> None:
        super().__init__()
        self.dialled = dialled
        self._broker = broker
        self._protocol = protocol
        self._received = bytearray()
        self._requests: asyncio.Queue[bytes] = asyncio.Queue()
        self._is_closed = False
        self._task = asyncio.create_task(self._serve())
        broker.transports[self] = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._broker.network.written.append((data, bytes(data)))
        self._received += data
        while len(self._received) >= 4:
            end = 4 + _SIZE.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            self._requests.put_nowait(bytes(self._received[4:end]))
            del self._received[:end]

    def waiting_requests(self) -> int:
        """The number of sent requests that the broker has not begun to read."""
        return self._requests.qsize()

    def send(self, data: bytes) -> None:
        """Deliver bytes from the broker to the client."""
        piece_size = self._broker.network.piece_size
        for start in range(0, len(data), piece_size):
            piece = data[start : start + piece_size]
            while piece and not self._is_closed:
                try:
                    buffer = memoryview(self._protocol.get_buffer(-1))
                except ProtocolError as error:
                    self._close(error)
                    return
                count = min(len(buffer), len(piece))
                buffer[:count] = piece[:count]
                self._protocol.buffer_updated(count)
                piece = piece[count:]

    def lose(self) -> None:
        """Close the connection on the side of the broker."""
        self._close(None)

    def abort(self) -> None:
        self._close(None)

    def close(self) -> None:
        self._close(None)

    def is_closing(self) -> bool:
        return self._is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def _close(self, error: Exception | None) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._broker.transports.pop(self, None)
            self._task.cancel()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error)

    async def _serve(self) -> None:
        while True:
            frame = await self._requests.get()
            header, offset = decode_request_header(frame)
            low, high = self._broker.versions.get(header.api_key, (0, -1))
            if not low <= header.api_version <= high:
                if header.api_key != API_VERSIONS_KEY:
                    self.lose()
                    return
                served = [ApiVersion(key, *range_) for key, range_ in self._broker.versions.items()]
                refusal = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, served)
                self._answer(encode_response(API_VERSIONS_KEY, 0, header.correlation_id, refusal))
                continue
            request = decode(by_key(header.api_key).request, header.api_version, frame, offset)
            answer = await self._broker.answer(header.api_key, request)
            if answer is DROP:
                self.lose()
                return
            if isinstance(answer, Message):
                self._answer(encode_response(header.api_key, header.api_version, header.correlation_id, answer))

    def _answer(self, frame: bytes | bytearray) -> None:
        self.send(_SIZE.pack(len(frame)) + frame)
