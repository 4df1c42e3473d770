"""Prepared requests, and the load generator that sends them (`load.c`, compiled at its first use).

The requests are encoded once. The first is sent from here and its response decoded, which shows that the broker accepts
the requests that follow at full speed.
"""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from ssl import SSLContext
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Any, Self

from benchmarks.side_by_side.results import Sample
from odradek.protocol import header
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import RequestHeader
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.schema import Message, spec
from tests.peers.availability import PEERS, program

PRODUCE_VERSION = FETCH_VERSION = 12  # the last with topic names: one request for both brokers
OFFSET_COMMIT_VERSION = 9  # the same
FIND_COORDINATOR_VERSION = 4
LIST_OFFSETS_VERSION = 8
API_VERSIONS_VERSION = 4
METADATA_VERSION = 12
CREATE_TOPICS_VERSION = 7
CREATE_PARTITIONS_VERSION = 3
DELETE_TOPICS_VERSION = 5
_HERE = Path(__file__).parent
_NOT_YET = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}  # fmt: skip
_ATTEMPTS = 600  # a minute: Kafka deletes thousands of partitions before it leads new ones
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
TIMESTAMP = 1_700_000_000_000
"""The timestamp of the first record of a batch; each next one is a millisecond later."""


def batch(records: int, value_bytes: int, codec: str = "none") -> bytes:
    """Return a batch of different values."""
    builder = BatchBuilder(Codec[codec.upper()])
    for number in range(records):
        builder.append(TIMESTAMP + number, None, number.to_bytes(4, "big") * (value_bytes // 4))
    return bytes(builder.build())


def produce_frame(topic: str, partitions: Iterable[int], records: bytes, acks: int = 1) -> bytes:
    """Return a Produce of one batch, the same for each partition."""
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(index, records) for index in partitions])
    return frame(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)


def fetch_frame(
    topic: str, partitions: Sequence[int], partition_bytes: int, offset: int = 0, *, read_committed: bool = False
) -> bytes:
    """Return a Fetch of so many bytes of each partition from `offset` on, without a session."""
    return fetch_from_frame(topic, dict.fromkeys(partitions, offset), partition_bytes, read_committed=read_committed)


def fetch_from_frame(
    topic: str,
    offsets: Mapping[int, int],
    partition_bytes: int,
    *,
    read_committed: bool = False,
    session: tuple[int, int] = (0, -1),
) -> bytes:
    """Return a Fetch from offsets by partition, with the id and epoch of a session; the default is to use none."""
    wanted = [
        FetchPartition(index, fetch_offset=offset, partition_max_bytes=partition_bytes)
        for index, offset in offsets.items()
    ]
    topics = [FetchTopic(topic, partitions=wanted)] if wanted else []
    session_id, epoch = session
    request = FetchRequest(
        max_wait_ms=10_000, min_bytes=1, isolation_level=int(read_committed),
        session_id=session_id, session_epoch=epoch, topics=topics,
    )  # fmt: skip
    return frame(request, FETCH_VERSION)


def offset_commit_frame(group: str, topic: str) -> bytes:
    """Return an OffsetCommit of one partition, by a consumer that is no member; it creates the group."""
    partition = OffsetCommitRequestPartition(0, committed_offset=1)
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])
    return frame(request, OFFSET_COMMIT_VERSION)


def list_offsets_frame(topic: str, timestamp: int, *, read_committed: bool = False) -> bytes:
    """Return a ListOffsets for the first record of partition 0 with this timestamp (ms) or a later one; -1: the end."""
    wanted = ListOffsetsTopic(topic, partitions=[ListOffsetsPartition(0, timestamp=timestamp)])
    return frame(ListOffsetsRequest(-1, int(read_committed), topics=[wanted]), LIST_OFFSETS_VERSION)


def create_topics_frame(names: Iterable[str]) -> bytes:
    """Return a CreateTopics of topics with one partition and one replica each."""
    topics = [CreatableTopic(name, 1, 1) for name in names]
    return frame(CreateTopicsRequest(topics, timeout_ms=30_000), CREATE_TOPICS_VERSION)


def create_partitions_frame(names: Iterable[str], partitions: int) -> bytes:
    """Return a CreatePartitions that grows topics to so many partitions each."""
    topics = [CreatePartitionsTopic(name, partitions, None) for name in names]
    return frame(CreatePartitionsRequest(topics, timeout_ms=60_000), CREATE_PARTITIONS_VERSION)


def find_coordinator_frame(group: str) -> bytes:
    return frame(FindCoordinatorRequest(coordinator_keys=[group]), FIND_COORDINATOR_VERSION)


def metadata_frame(topics: Iterable[str]) -> bytes:
    """Return a Metadata for topics by their names, which creates none."""
    wanted = [MetadataRequestTopic(name=name) for name in topics]
    return frame(MetadataRequest(wanted, allow_auto_topic_creation=False), METADATA_VERSION)


def delete_topics_frame(topics: Iterable[str]) -> bytes:
    return frame(DeleteTopicsRequest(topic_names=list(topics), timeout_ms=60_000), DELETE_TOPICS_VERSION)


def frame(request: Message, version: int) -> bytes:
    """Return a framed request with correlation id 0."""
    key = spec(type(request)).key
    assert key is not None
    body = header.encode_request(RequestHeader(key, version, 0, "benchmark"), request)
    return SIZE_PREFIX.pack(len(body)) + bytes(body)


class Asker:
    """A connection that sends one request at a time and decodes its response; with a context it uses TLS."""

    def __init__(self, port: int, tls: SSLContext | None = None) -> None:
        plain = socket.create_connection(("127.0.0.1", port))
        self._connection = plain if tls is None else tls.wrap_socket(plain)
        self._answers = self._connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._connection.close()

    def ask(self, frame: bytes) -> tuple[int, Any]:
        """Send a frame; return the size of the framed response in bytes, and the response."""
        self._connection.sendall(frame)
        return self._response(frame)

    def _response(self, frame: bytes) -> tuple[int, Any]:
        """Read the response to a frame; return its framed size in bytes, and the response."""
        (size,) = SIZE_PREFIX.unpack(self._answers.read(SIZE_PREFIX.size))
        key, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
        return SIZE_PREFIX.size + size, header.decode_response(key, version, self._answers.read(size))[1]

    def exchange(self, frame: bytes) -> int:
        """Send a frame; read its response and return the framed size in bytes."""
        self._connection.sendall(frame)
        (size,) = SIZE_PREFIX.unpack(self._answers.read(SIZE_PREFIX.size))
        return SIZE_PREFIX.size + len(self._answers.read(size))

    def accepted(self, frame: bytes) -> tuple[int, Any]:
        """Send until the response has no error, and return it. Raises RuntimeError if the broker refuses.

        Kafka's controller reports a topic as created before its broker leads it, so some errors are retried.
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

    def ask_together(self, frames: Sequence[bytes]) -> list[Any]:
        """Send all frames, then read the responses; return these, with their errors if they have any."""
        self._connection.sendall(b"".join(frames))
        return [self._response(frame)[1] for frame in frames]


def _errors(answer: Any) -> set[int]:
    """Return the error codes of a response and of all its rows, without NONE."""
    if isinstance(answer, list):
        return {code for each in answer for code in _errors(each)}
    found: set[int] = set()
    for name in getattr(answer, "__struct_fields__", ()):
        value = getattr(answer, name)
        found |= {value} if name.endswith("error_code") else _errors(value)
    return found - {ErrorCode.NONE}


def ask(port: int, frame: bytes) -> tuple[int, Any]:
    """Call `Asker.ask` on a new connection."""
    with Asker(port) as asker:
        return asker.ask(frame)


def accepted_bytes(port: int, frame: bytes) -> int:
    """Return the size of a response without an error. Raises RuntimeError if the broker refuses."""
    with Asker(port) as asker:
        return asker.accepted(frame)[0]


class Load:
    """A running generator. `result` waits for its end; leaving the context stops it.

    `requests` are the contents of the file that it reads, `source` is the file of its program; with `tls` its
    connections use TLS.
    """

    def __init__(
        self, port: int, requests: Sequence[bytes], *arguments: object, source: str = "load.c", tls: bool = False
    ) -> None:
        self._requests = NamedTemporaryFile(prefix="requests-")  # noqa: SIM115 - closed by __exit__
        self._requests.writelines(requests)
        self._requests.flush()
        command = [program_of(source, tls=tls), str(port), self._requests.name, *map(str, arguments)]
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
        """Return the measurement. Raises RuntimeError if the broker did not respond as expected."""
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
    together: int = 1,
    tls_port: int | None = None,
) -> Sample:
    """Send `frames` for some seconds, with a rate so many a second over all connections. Return rate and latencies."""
    how: dict[str, Any] = {"rate": rate, "walk": walk, "together": together, "tls_port": tls_port}
    with start(port, frames, connections=connections, in_flight=in_flight, seconds=seconds, **how) as load:
        measured = load.result(seconds + 60)
    requests = measured["requests"] * together
    return {"rate": requests / seconds, "requests": requests, **latencies(measured)}


def start(
    port: int,
    frames: Sequence[bytes],
    *,
    connections: int,
    in_flight: int,
    seconds: float,
    rate: float = 0,
    walk: bool = False,
    together: int = 1,
    tls_port: int | None = None,
) -> Load:
    """Start to send in the background: its frame on each connection, or with `walk` all frames in succession.

    Each of `frames` is one request, or so many `together` of which only the last is answered (Produce with acks=0).
    All responses must have the same size, which the generator checks; of the frames of a walk only the first is tried
    before, always on the plain `port`. With `tls_port` the load goes there, with TLS.
    """
    sizes = {accepted_bytes(port, frame) for frame in (frames[:1] if walk else frames)}
    if len(sizes) != 1:
        raise RuntimeError("the requests of one load must have answers of one length")
    arguments = (connections, in_flight, seconds, rate, sizes.pop(), int(walk), together)
    return Load(tls_port or port, frames, *arguments, tls=tls_port is not None)


def repeat(port: int, frame: bytes, times: int) -> None:
    """Send a frame repeatedly, in succession, and check every response."""
    with Asker(port) as asker:
        for _ in range(times):
            asker.accepted(frame)


def fetch_in_session(port: int, first: bytes, seconds: float) -> Sample:
    """Open a fetch session with `first`, then send its empty incremental requests, one at a time. Return as `run` does.

    The session has records at the same offsets each time, so that no request waits. The loop costs 30 µs a request.
    """
    with Asker(port) as asker:
        _, opened = asker.accepted(first)
        if not opened.session_id:
            raise RuntimeError("the broker has opened no session")
        epoch = 1
        expected = asker.accepted(fetch_from_frame("", {}, 0, session=(opened.session_id, epoch)))[0]
        times: list[float] = []
        ends_at = time.perf_counter() + seconds
        while not times or time.perf_counter() < ends_at:
            epoch += 1
            request = fetch_from_frame("", {}, 0, session=(opened.session_id, epoch))
            began = time.perf_counter()
            if asker.exchange(request) != expected:
                raise RuntimeError("an answer of another length than the first: refused?")
            times.append(time.perf_counter() - began)
    times.sort()
    quantile = {name: round(times[int(len(times) * share)] * 1e9) for name, share in _QUANTILES.items()}
    return {"rate": len(times) / seconds, "requests": len(times), **latencies(quantile)}


def wake(port: int, fetch: bytes, produce: bytes, *, next_offset: int, rounds: int) -> Sample:
    """Measure the time from a Produce to the response of the Fetch that waited for it, `rounds` times."""
    offset_at = changed_at(fetch)
    with Load(port, [fetch, produce], "wake", rounds, offset_at, next_offset) as load:
        measured = load.result(60 + rounds * 0.1)
    return {"requests": rounds, **latencies(measured)}


OFFSET_MARK = 0x0123456789ABCDEF
"""The offset in the Fetch for `wake`, by which its position in the frame is found."""


def changed_at(fetch: bytes) -> int:
    """Return the position of the offset in a Fetch at `OFFSET_MARK`."""
    return fetch.index(OFFSET_MARK.to_bytes(8, "big"))


def handshakes(tls_port: int, processes: int, seconds: float) -> Sample:
    """Open connections with full TLS handshakes, so many at once, for one ApiVersions each. Return rate, latencies."""
    frames = [frame(ApiVersionsRequest("benchmark", "1"), API_VERSIONS_VERSION)]
    with ExitStack() as stack:
        loads = [stack.enter_context(Load(tls_port, frames, "handshakes", seconds, tls=True)) for _ in range(processes)]
        measured = [each.result(seconds + 60) for each in loads]
    requests = sum(each["requests"] for each in measured)
    return {"rate": requests / seconds, "requests": requests, **slower(measured)}


def slower(measured: Sequence[Mapping[str, int]]) -> Sample:
    """Return the quantiles of several generators: of each that of the slowest."""
    return latencies({name: max(each[name] for each in measured) for name in _QUANTILES})


def latencies(measured: Mapping[str, int]) -> Sample:
    """Return the quantiles that a generator measured."""
    return {"p50_us": measured["p50"] / 1000, "p99_us": measured["p99"] / 1000, "p999_us": measured["p999"] / 1000}


@cache
def program_of(source: str, *, tls: bool = False) -> str:
    """Compile a generator, once for each version of its source; return the path of the program.

    With `tls` it needs the headers of OpenSSL.
    """
    texts = [(_HERE / name).read_bytes() for name in (source, "measure.h", "transport.h")]
    name = f"{Path(source).stem}{'-tls' if tls else ''}"
    compiled = PEERS / f"{name}-{hashlib.sha256(b''.join(texts)).hexdigest()[:12]}"
    if not compiled.exists():
        PEERS.mkdir(exist_ok=True)
        with_tls = ["-DTLS", "-lssl"] if tls else []
        subprocess.run([program("cc", "gcc"), "-O2", "-o", str(compiled), str(_HERE / source), *with_tls], check=True)
    return str(compiled)
