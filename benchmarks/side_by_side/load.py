"""Prepared requests, and the load generator that sends them (`load.c`, compiled when it is first wanted).

The requests are Kafka's own bytes, made once; the first is sent from here and its answer decoded, so that what follows
at full speed is known to be accepted.
"""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Any, Self

from benchmarks.side_by_side.results import Sample
from odradek.protocol import header
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import RequestHeader
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.schema import Message, spec
from tests.peers.availability import PEERS, program

PRODUCE_VERSION = 12  # the last that names topics: one request for both brokers
FETCH_VERSION = 12
OFFSET_COMMIT_VERSION = 9  # the same
FIND_COORDINATOR_VERSION = 4
LIST_OFFSETS_VERSION = 8
_SOURCE = Path(__file__).with_name("load.c")
_NOT_YET = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR,
}  # fmt: skip
_ATTEMPTS = 600  # a minute: Kafka deletes thousands of partitions before it leads the next
TIMESTAMP = 1_700_000_000_000
"""Of the first record of a batch; the others follow by a millisecond each."""


def batch(records: int, value_bytes: int, codec: str = "none") -> bytes:
    """One batch of different values."""
    builder = BatchBuilder(Codec[codec.upper()])
    for number in range(records):
        builder.append(TIMESTAMP + number, None, number.to_bytes(4, "big") * (value_bytes // 4))
    return bytes(builder.build())


def produce_frame(topic: str, partitions: Iterable[int], records: bytes, acks: int = 1) -> bytes:
    """A Produce of one batch, the same for each partition."""
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(index, records) for index in partitions])
    return frame(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)


def fetch_frame(
    topic: str, partitions: Sequence[int], partition_bytes: int, offset: int = 0, *, read_committed: bool = False
) -> bytes:
    """A Fetch of so many bytes of each partition from `offset` on, outside of any session."""
    wanted = [FetchPartition(index, fetch_offset=offset, partition_max_bytes=partition_bytes) for index in partitions]
    topics = [FetchTopic(topic, partitions=wanted)]
    request = FetchRequest(max_wait_ms=10_000, min_bytes=1, isolation_level=int(read_committed), topics=topics)
    return frame(request, FETCH_VERSION)


def offset_commit_frame(group: str, topic: str) -> bytes:
    """An OffsetCommit of one partition, by a consumer that is no member: the group is made when it is not there."""
    partition = OffsetCommitRequestPartition(0, committed_offset=1)
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])
    return frame(request, OFFSET_COMMIT_VERSION)


def list_offsets_frame(topic: str, timestamp: int) -> bytes:
    """A ListOffsets for the first record of the topic's partition 0 that is of this time (ms) or later."""
    wanted = ListOffsetsTopic(topic, partitions=[ListOffsetsPartition(0, timestamp=timestamp)])
    return frame(ListOffsetsRequest(-1, topics=[wanted]), LIST_OFFSETS_VERSION)


def find_coordinator_frame(group: str) -> bytes:
    return frame(FindCoordinatorRequest(coordinator_keys=[group]), FIND_COORDINATOR_VERSION)


def frame(request: Message, version: int) -> bytes:
    """A request as it goes over the wire, with correlation id 0."""
    key = spec(type(request)).key
    assert key is not None
    body = header.encode_request(RequestHeader(key, version, 0, "benchmark"), request)
    return SIZE_PREFIX.pack(len(body)) + bytes(body)


class Asker:
    """A connection on which one request at a time is sent, and its answer decoded."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port))
        self._answers = self._connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._connection.close()

    def ask(self, frame: bytes) -> tuple[int, Any]:
        """Send a frame; returns how many bytes its answer had, with its length, and the answer."""
        self._connection.sendall(frame)
        (size,) = SIZE_PREFIX.unpack(self._answers.read(SIZE_PREFIX.size))
        key, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
        return SIZE_PREFIX.size + size, header.decode_response(key, version, self._answers.read(size))[1]

    def accepted(self, frame: bytes) -> tuple[int, Any]:
        """Ask until the answer is a good one, which is returned; raises RuntimeError if the broker refuses.

        Kafka's controller calls a topic created before its broker leads it, so some refusals are asked again.
        """
        errors: set[int] = set()
        for _ in range(_ATTEMPTS):
            size, answer = self.ask(frame)
            errors = _errors(answer)
            if not errors:
                return size, answer
            if not errors <= _NOT_YET:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the broker at {self._connection.getpeername()} answers with errors {errors}")


def _errors(answer: Any) -> set[int]:
    """The errors of the partitions of a Produce, Fetch, ListOffsets or OffsetCommit, or those of a FindCoordinator."""
    if hasattr(answer, "coordinators"):
        rows = answer.coordinators
    else:
        topics = answer.responses if hasattr(answer, "responses") else answer.topics
        rows = [row for topic in topics for row in getattr(topic, "partition_responses", None) or topic.partitions]
    return {row.error_code for row in rows} - {ErrorCode.NONE}


def ask(port: int, frame: bytes) -> tuple[int, Any]:
    """`Asker.ask`, on a connection of its own."""
    with Asker(port) as asker:
        return asker.ask(frame)


def accepted_bytes(port: int, frame: bytes) -> int:
    """The length of a good answer; raises RuntimeError if the broker refuses."""
    with Asker(port) as asker:
        return asker.accepted(frame)[0]


class Load:
    """A generator at work. `result` waits for its end; leaving the context ends it."""

    def __init__(self, port: int, frames: Sequence[bytes], *arguments: object) -> None:
        self._requests = NamedTemporaryFile(prefix="requests-")  # noqa: SIM115 - closed by __exit__
        self._requests.writelines(frames)
        self._requests.flush()
        command = [_program(), str(port), self._requests.name, *map(str, arguments)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._requests.close()

    def result(self, timeout: float) -> dict[str, int]:
        """What it measured; raises RuntimeError if the broker did not do as it should."""
        out, complaint = self._process.communicate(timeout=timeout)
        if self._process.returncode:
            raise RuntimeError(complaint.strip())
        measured: dict[str, int] = json.loads(out)
        return measured


def run(
    port: int,
    frames: Sequence[bytes],
    *,
    connections: int,
    in_flight: int,
    seconds: float,
    rate: float = 0,
    walk: bool = False,
) -> Sample:
    """Send `frames` for so long; with a rate, so many a second over all connections. Returns rate and latencies."""
    with start(
        port, frames, connections=connections, in_flight=in_flight, seconds=seconds, rate=rate, walk=walk
    ) as load:
        measured = load.result(seconds + 60)
    return {"rate": measured["requests"] / seconds, "requests": measured["requests"], **_latencies(measured)}


def start(
    port: int,
    frames: Sequence[bytes],
    *,
    connections: int,
    in_flight: int,
    seconds: float,
    rate: float = 0,
    walk: bool = False,
) -> Load:
    """Begin to send, and return while it goes on: to each connection its frame, or, to `walk`, all one after the other.

    All must have answers of one length, which the generator checks; of those to walk through only the first is asked
    for before it begins.
    """
    sizes = {accepted_bytes(port, frame) for frame in (frames[:1] if walk else frames)}
    if len(sizes) != 1:
        raise RuntimeError("the requests of one load must have answers of one length")
    return Load(port, frames, connections, in_flight, seconds, rate, sizes.pop(), int(walk))


def repeat(port: int, frame: bytes, times: int) -> None:
    """Send a frame so often, one after the other, and check every answer."""
    with Asker(port) as asker:
        for _ in range(times):
            asker.accepted(frame)


def wake(port: int, fetch: bytes, produce: bytes, *, next_offset: int, rounds: int) -> Sample:
    """From a Produce to the answer of the Fetch that waited for it, `rounds` times."""
    offset_at = _changed_at(fetch)
    with Load(port, [fetch, produce], "wake", rounds, offset_at, next_offset) as load:
        measured = load.result(60 + rounds * 0.1)
    return {"requests": rounds, **_latencies(measured)}


OFFSET_MARK = 0x0123456789ABCDEF
"""The offset that a Fetch for `wake` is made with, so that its place is found."""


def _changed_at(fetch: bytes) -> int:
    return fetch.index(OFFSET_MARK.to_bytes(8, "big"))


def _latencies(measured: dict[str, int]) -> Sample:
    return {"p50_us": measured["p50"] / 1000, "p99_us": measured["p99"] / 1000, "p999_us": measured["p999"] / 1000}


@cache
def _program() -> str:
    """Compile the generator; once for each version of its source."""
    compiled = PEERS / f"load-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}"
    if not compiled.exists():
        PEERS.mkdir(exist_ok=True)
        subprocess.run([program("cc", "gcc"), "-O2", "-o", str(compiled), str(_SOURCE)], check=True)
    return str(compiled)
