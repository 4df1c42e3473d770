"""Prepared requests of transactional producers, and the generator that sends them (`transactions.c`).

| request | version 1 of the protocol | version 2 |
|---|---|---|
| AddPartitionsToTxn | 3 | |
| Produce, one batch for each partition | 11 | 12, which also adds the partitions |
| EndTxn, commit | 4 | 5, which returns the next epoch |

The requests are encoded once; the generator changes ids, epochs, sequences and checksums in them. Before a load each
producer does one transaction from here, which shows that the broker accepts the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

from msgspec.structs import replace

from benchmarks.side_by_side import load
from benchmarks.side_by_side.results import Sample
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import encode_response
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.schema import Message

VERSIONS = (2, 1)
"""Of the protocol of transactions, and of the feature `transaction.version`."""
TIMEOUT_MS = 60_000

_SOURCE = "transactions.c"
_TRANSACTION = 1  # the type of coordinator
_ID_MARK = 0x0123456789ABCDEF
_CODE_MARK = 0x7A7B
_NO_ID = 0
_NUMBER = Struct(">i").pack
_PRODUCER = Struct(">qii").pack
_FIND_COORDINATOR_VERSION = 4
_INIT_VERSION = 4


class Producer(NamedTuple):
    """A transactional id, the producer id that it got, and the epoch."""

    transactional_id: str
    producer_id: int
    epoch: int


class _Request(NamedTuple):
    """A request of each transaction. `make` makes it for a producer with its id and epoch."""

    version: int
    make: Callable[[Producer], Message]


def initialized(asker: load.Asker, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> Producer:
    """Begin to use a transactional id: get its producer id and a new epoch."""
    find = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[transactional_id])
    asker.accepted(load.frame(find, _FIND_COORDINATOR_VERSION))
    answer = asker.accepted(load.frame(InitProducerIdRequest(transactional_id, timeout_ms), _INIT_VERSION))[1]
    return Producer(transactional_id, answer.producer_id, answer.producer_epoch)


class Work(NamedTuple):
    """What a producer does in each transaction: one batch of so many records to each of these partitions."""

    topic: str
    partitions: Sequence[int]
    records: int
    value_bytes: int
    version: int


def requests_of(work: Work) -> list[_Request]:
    """Return the requests of one transaction, without the end."""
    produce = _Request(12 if work.version == 2 else 11, partial(_produce, work))
    if work.version == 2:
        return [produce]
    return [_Request(3, partial(_add_partitions, work)), produce]


def _add_partitions(work: Work, producer: Producer) -> Message:
    topics = [AddPartitionsToTxnTopic(work.topic, list(work.partitions))]
    return AddPartitionsToTxnRequest([], *producer, topics)


def _produce(work: Work, producer: Producer) -> Message:
    records = batch(work.records, work.value_bytes, producer)
    rows = [PartitionProduceData(index, records) for index in work.partitions]
    return ProduceRequest(producer.transactional_id, -1, 30_000, [TopicProduceData(work.topic, partition_data=rows)])


def batch(records: int, value_bytes: int, producer: Producer, base_sequence: int = 0) -> bytes:
    """Return a transactional batch of different values."""
    builder = BatchBuilder(
        Codec.NONE,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=base_sequence,
        is_transactional=True,
    )
    for number in range(records):
        builder.append(load.TIMESTAMP + number, None, number.to_bytes(4, "big") * (value_bytes // 4))
    return bytes(builder.build())


def end(version: int) -> _Request:
    """Return the EndTxn that commits."""
    return _Request(5 if version == 2 else 4, lambda producer: EndTxnRequest(*producer, committed=True))


def commit_one(asker: load.Asker, work: Work, producer: Producer) -> bytes:
    """Do one transaction from here; return the producer's part of the script for the ones that follow.

    The producer must have its epoch from InitProducerId, without a transaction since then.
    """
    steps: list[bytes] = []
    answer: Any = None
    marked = producer._replace(producer_id=_ID_MARK, epoch=0)
    requests = [*requests_of(work), end(work.version)]
    for request in requests:
        _, answer = asker.accepted(load.frame(request.make(producer), request.version))
        steps.append(_step(request, marked, answer))
    if work.version == 2:
        producer = producer._replace(producer_id=answer.producer_id, epoch=answer.producer_epoch)
    else:  # an epoch whose sequences begin with 0 again
        producer = initialized(asker, producer.transactional_id)
    return _PRODUCER(producer.producer_id, producer.epoch, len(steps)) + b"".join(steps)


def only(frame: bytes) -> bytes:
    """Return the part of a script that has one request and no producer, such as a Fetch."""
    return _PRODUCER(-1, -1, 1) + _NUMBER(0) + _NUMBER(0) + frame


def _step(request: _Request, marked: Producer, answer: Any) -> bytes:
    """Return a request with the places in its response that the generator reads."""
    frame = load.frame(request.make(marked), request.version)
    key = int.from_bytes(frame[4:6], "big")

    def places(changed: Any, mark: bytes) -> list[int]:
        response = SIZE_PREFIX.pack(0) + bytes(encode_response(key, request.version, 0, changed))
        found = [response.find(mark)]
        while found[-1] >= 0:
            found.append(response.find(mark, found[-1] + 1))
        return found[:-1]

    errors = places(_with_codes(answer), _CODE_MARK.to_bytes(2, "big"))
    has_id = isinstance(request.make(marked), EndTxnRequest) and request.version >= 5
    ids = places(replace(answer, producer_id=_ID_MARK), _ID_MARK.to_bytes(8, "big")) if has_id else [_NO_ID]
    [next_id] = ids
    return b"".join(map(_NUMBER, [len(errors), *errors, next_id])) + frame


def _with_codes(answer: Any) -> Any:
    """Return the response with the mark in place of each error code."""
    if isinstance(answer, list):
        return [_with_codes(each) for each in answer]
    if not hasattr(answer, "__struct_fields__"):
        return answer
    values = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return replace(
        answer,
        **{name: _CODE_MARK if name.endswith("error_code") else _with_codes(each) for name, each in values.items()},
    )


def run(port: int, works: Sequence[Work], *, seconds: float) -> Sample:
    """Let a producer do each of these for some seconds, one transaction after the other."""
    with load.Load(port, script(port, works), "load", seconds, source=_SOURCE) as running:
        measured = running.result(seconds + 120)
    return {
        "transactions_per_s": measured["transactions"] / seconds,
        "requests": measured["transactions"],
        **load.latencies(measured),
    }


def visible(port: int, work: Work, *, rounds: int) -> Sample:
    """Measure the time from a commit to the response of the read_committed Fetch that waits for it, `rounds` times.

    The work must be that of one partition, 0, into which nothing else writes.
    """
    [_, producer] = script(port, [work])
    fetch = load.fetch_frame(work.topic, [0], 1 << 20, _end_offset(port, work.topic), read_committed=True)
    offset_at = load.changed_at(load.fetch_frame(work.topic, [0], 1 << 20, load.OFFSET_MARK, read_committed=True))
    arguments = ("visible", rounds, offset_at, work.records + 1, work.records * work.value_bytes)
    with load.Load(port, [_NUMBER(2), producer, only(fetch)], *arguments, source=_SOURCE) as running:
        measured = running.result(60 + rounds * 0.5)
    return {"requests": rounds, **load.latencies(measured)}


def _end_offset(port: int, topic: str) -> int:
    """Return the end of partition 0 when no transaction is open: Kafka answers EndTxn before it writes the markers."""
    frames = [load.list_offsets_frame(topic, -1, read_committed=committed) for committed in (True, False)]
    with load.Asker(port) as asker:
        while True:
            stable, end = (asker.accepted(frame)[1].topics[0].partitions[0].offset for frame in frames)
            if stable == end:
                return int(end)


def script(port: int, works: Sequence[Work]) -> list[bytes]:
    """Do one transaction for each producer; return the script of the generator."""
    parts = [_NUMBER(len(works))]
    with ExitStack() as stack:
        asker = stack.enter_context(load.Asker(port))
        for number, work in enumerate(works):
            parts.append(commit_one(asker, work, initialized(asker, f"benchmark-{number}")))
    return parts


def fill(port: int, work: Work, transactions: int) -> None:
    """Do so many transactions, one after the other, in a log that holds nothing else."""
    with load.Asker(port) as asker:
        producer = initialized(asker, "benchmark-fill")
        answer: Any = None
        for _ in range(transactions):
            for request in [*requests_of(work), end(work.version)]:
                _, answer = asker.accepted(load.frame(request.make(producer), request.version))
            producer = producer._replace(producer_id=answer.producer_id, epoch=answer.producer_epoch)
