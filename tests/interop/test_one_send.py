"""Requests that are sent together on one connection: they are executed and answered in order."""

from __future__ import annotations

import socket
from collections.abc import Callable

from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.schema import Message, spec
from tests.peers.server import Server
from tests.storage.logs import batch

VERSIONS = {0: 9, 2: 6}
"""The versions of Produce and ListOffsets."""
LARGE = b"x" * 300_000
"""The value of a batch that is large enough to be written by a thread."""
LATEST = -1
GARBAGE = b"\xff" * 8


class Requests:
    """The requests; correlation ids count from 0."""

    def __init__(self, topic: str) -> None:
        self.sent = bytearray()
        self._topic = topic
        self._apis: list[int] = []

    def produce(self, partition: int, records: bytes | memoryview, acks: int = 1) -> None:
        data = [PartitionProduceData(partition, records)]
        self._add(
            ProduceRequest(
                acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(self._topic, partition_data=data)]
            )
        )

    def list_offsets(self, partition: int) -> None:
        wanted = ListOffsetsTopic(self._topic, partitions=[ListOffsetsPartition(partition, timestamp=LATEST)])
        self._add(ListOffsetsRequest(-1, topics=[wanted]))

    def _add(self, request: Message) -> None:
        key = spec(type(request)).key
        assert key is not None
        body = encode_request(RequestHeader(key, VERSIONS[key], len(self._apis), "all at once"), request)
        self._apis.append(key)
        self.sent += SIZE_PREFIX.pack(len(body)) + body

    def answers(self, received: bytes) -> list[tuple[int, ErrorCode, int]]:
        """Correlation id, error and offset of each response in `received`."""
        found = []
        while received:
            (size,) = SIZE_PREFIX.unpack_from(received)
            body, received = received[4 : 4 + size], received[4 + size :]
            api = self._apis[int.from_bytes(body[:4])]
            correlation_id, response = decode_response(api, VERSIONS[api], body)
            if api == 0:
                row = response.responses[0].partition_responses[0]
                found.append((correlation_id, ErrorCode(row.error_code), row.base_offset))
            else:
                row = response.topics[0].partitions[0]
                found.append((correlation_id, ErrorCode(row.error_code), row.offset))
        return found


def exchange(server: Server, sent: bytes) -> bytes:
    """All responses before the broker closes the connection."""
    received = bytearray()
    with socket.create_connection((server.host, server.port), timeout=30) as peer:
        peer.sendall(sent)
        while part := peer.recv(65536):
            received += part
    return bytes(received)


def test_responses_arrive_in_order_before_invalid_bytes_close_the_connection(
    server: Server, make_topic: Callable[..., str]
) -> None:
    requests = Requests(make_topic(partitions=2))
    spoiled = batch(LARGE)
    spoiled[-1] ^= 1
    requests.produce(0, batch(LARGE))
    requests.produce(0, batch(b"a", b"b"))
    requests.produce(9, batch(LARGE))
    requests.produce(1, batch(LARGE, b"c"), acks=0)
    requests.list_offsets(1)
    requests.produce(1, spoiled)
    requests.produce(1, batch(b"d"))
    requests.list_offsets(0)
    requests.produce(0, batch(LARGE), acks=-1)

    received = exchange(server, requests.sent + GARBAGE)

    assert requests.answers(received) == [
        (0, ErrorCode.NONE, 0),
        (1, ErrorCode.NONE, 1),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (4, ErrorCode.NONE, 2),
        (5, ErrorCode.CORRUPT_MESSAGE, -1),
        (6, ErrorCode.NONE, 2),
        (7, ErrorCode.NONE, 3),
        (8, ErrorCode.NONE, 3),
    ]


def test_a_failure_without_a_response_closes_the_connection_after_earlier_responses(
    server: Server, make_topic: Callable[..., str]
) -> None:
    requests = Requests(make_topic(partitions=1))
    requests.produce(0, batch(LARGE))
    requests.produce(9, batch(b"a"), acks=0)
    requests.produce(0, batch(b"b"))

    received = exchange(server, bytes(requests.sent))

    assert requests.answers(received) == [(0, ErrorCode.NONE, 0)]
