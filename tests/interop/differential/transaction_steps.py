"""The steps of scripts about transactions: each request with the fields and the version that matter.

A script uses the producer ids in the order in which its server assigned them: `P(0)` is the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.handlers.requests import batch, produce_request
from tests.interop.differential.partitions import create, offsets
from tests.interop.differential.playing import Seen, Step

TOPIC, GROUP = "txn-data", "txn-group"
UNKNOWN_ID = 987_654_321
GROUP_KEY, TRANSACTION_KEY = 0, 1


DATA = {TOPIC: [0, 1]}
START = [Step(DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=30_000), 5), create(TOPIC, 3), offsets(TOPIC, 3, -1)]
"""The first steps of each script: a new topic. The first script has none to delete."""


class P(NamedTuple):
    """A producer id: the n-th that the server has assigned in this script."""

    index: int


Id = P | int


def _id(seen: Seen, producer: Id) -> int:
    return seen.producer_ids[producer.index] if isinstance(producer, P) else producer


def find(key: str, kind: int = TRANSACTION_KEY, version: int = 6) -> Step:
    if version < 4:
        return Step(FindCoordinatorRequest(key, kind), version)
    return Step(FindCoordinatorRequest("", kind, [key]), version)


def begin(name: str, kind: int = TRANSACTION_KEY) -> list[Step]:
    """Wait until there is a topic and a coordinator, which the first request creates, and until it is loaded."""
    found = Step(FindCoordinatorRequest("", kind, [name]), 6, reads=True, ready=_succeeds)
    loaded = Step(DescribeTransactionsRequest([name]), 0, reads=True, ready=_is_unknown)
    # Apache Kafka has no producer ids right after its start.
    has_ids = Step(InitProducerIdRequest(None), 4, reads=True, counts=lambda answer: answer.error_code, ready=_has_id)
    return [*START, found, loaded, has_ids]


def await_group_coordinator() -> Step:
    return Step(FindCoordinatorRequest("", GROUP_KEY, [GROUP]), 6, reads=True, ready=_succeeds)


def _succeeds(answer: Any) -> bool:
    return answer.coordinators[0].error_code == ErrorCode.NONE


def _is_unknown(answer: Any) -> bool:
    return answer.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def _has_id(answer: Any) -> bool:
    return answer.error_code == ErrorCode.NONE


def init(name: str | None, producer: Id = -1, epoch: int = -1, version: int = 5, timeout_ms: int = 60_000) -> Step:
    return Step(lambda seen: InitProducerIdRequest(name, timeout_ms, _id(seen, producer), epoch), version)


def add(name: str, producer: Id, epoch: int, topics: Mapping[str, Sequence[int]], version: int = 3) -> Step:
    rows = [AddPartitionsToTxnTopic(topic, list(indexes)) for topic, indexes in topics.items()]
    return Step(lambda seen: AddPartitionsToTxnRequest([], name, _id(seen, producer), epoch, rows), version)


class Entry(NamedTuple):
    """A transaction in a request of a broker."""

    name: str
    producer: Id
    epoch: int
    topics: Mapping[str, Sequence[int]]
    verify_only: bool = True


def add_as_broker(*entries: Entry, version: int = 5) -> Step:
    def request(seen: Seen) -> AddPartitionsToTxnRequest:
        rows = [
            AddPartitionsToTxnTransaction(
                each.name, _id(seen, each.producer), each.epoch, each.verify_only,
                [AddPartitionsToTxnTopic(topic, list(indexes)) for topic, indexes in each.topics.items()],
            )
            for each in entries
        ]  # fmt: skip
        return AddPartitionsToTxnRequest(rows)

    return Step(request, version)


def add_offsets(name: str, producer: Id, epoch: int, group: str = GROUP, version: int = 4) -> Step:
    return Step(lambda seen: AddOffsetsToTxnRequest(name, _id(seen, producer), epoch, group), version)


def commit_offsets(
    name: str,
    producer: Id,
    epoch: int,
    *,
    group: str = GROUP,
    topic: str = TOPIC,
    offset: int = 7,
    version: int = 5,
    **member: Any,
) -> Step:
    rows = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, offset)])]

    def request(seen: Seen) -> TxnOffsetCommitRequest:
        return TxnOffsetCommitRequest(name, group, _id(seen, producer), epoch, topics=rows, **member)

    return Step(request, version)


def end(name: str, producer: Id, epoch: int, committed: bool = True, version: int = 5) -> Step:
    return Step(lambda seen: EndTxnRequest(name, _id(seen, producer), epoch, committed), version)


def send(
    name: str | None,
    producer: Id,
    epoch: int,
    sequence: int = 0,
    partition: int = 0,
    version: int = 12,
    *,
    transactional: bool = True,
) -> Step:
    def request(seen: Seen) -> Any:
        records = batch(
            b"v", producer_id=_id(seen, producer), producer_epoch=epoch, base_sequence=sequence,
            is_transactional=transactional,
        )  # fmt: skip
        return produce_request(TOPIC, records, partition, acks=-1, transactional_id=name)

    return Step(request, version)


def mark(
    producer: Id,
    epoch: int,
    topics: Mapping[str, Sequence[int]],
    committed: bool = True,
    coordinator_epoch: int = 100,
    version: int = 1,
    transaction_version: int = 0,
) -> Step:
    def request(seen: Seen) -> WriteTxnMarkersRequest:
        rows = [WritableTxnMarkerTopic(topic, list(indexes)) for topic, indexes in topics.items()]
        marker = WritableTxnMarker(_id(seen, producer), epoch, committed, rows, coordinator_epoch, transaction_version)
        return WriteTxnMarkersRequest([marker])

    return Step(request, version)


def send_of_two_producers(name: str, producer: Id, epoch: int) -> Step:
    def request(seen: Seen) -> Any:
        both = [
            batch(b"v", producer_id=each, producer_epoch=epoch, base_sequence=0, is_transactional=True)
            for each in (_id(seen, producer), UNKNOWN_ID)
        ]
        return produce_request(TOPIC, b"".join(both), acks=-1, transactional_id=name)

    return Step(request, 12)


def mark_nothing() -> Step:
    return Step(WriteTxnMarkersRequest([]), 1)


def state(name: str, *states: str) -> Step:
    """Wait until the transaction has one of these states, then compare the descriptions."""

    def ready(answer: Any) -> bool:
        return answer.transaction_states[0].transaction_state in states

    return Step(DescribeTransactionsRequest([name]), 0, reads=True, ready=ready)


def describe(*names: str) -> Step:
    return Step(DescribeTransactionsRequest(list(names)), 0)


def list_transactions(
    prefix: str, states: Sequence[str] = (), producer: Id | None = None, version: int = 2, **fields: Any
) -> Step:
    """List the transactions whose ids begin with `prefix`."""

    def request(seen: Seen) -> ListTransactionsRequest:
        ids = [] if producer is None else [_id(seen, producer)]
        return ListTransactionsRequest(list(states), ids, **fields)

    def counts(answer: Any) -> Any:
        answer.transaction_states = [
            row for row in answer.transaction_states if row.transactional_id.startswith(prefix)
        ]
        return answer

    return Step(request, version, counts=counts)


def stable_offsets(version: int = 8, *, stable: bool = True) -> Step:
    groups = [OffsetFetchRequestGroup(GROUP, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])])]
    return Step(OffsetFetchRequest(groups=groups, require_stable=stable), version, reads=True)


def set_level(level: int, kind: int = 1, feature: str = "transaction.version", *, dry: bool = False) -> Step:
    return Step(UpdateFeaturesRequest(5000, [FeatureUpdateKey(feature, level, upgrade_type=kind)], dry), 2)


def versions(step: Callable[[int], Step], first: int, last: int) -> list[Step]:
    return [step(version) for version in range(first, last + 1)]
