"""The worst requests of transactional producers, and of clients that pretend to be brokers.

A producer has to begin first, so some kinds send InitProducerId, and make the later requests from its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from odradek.protocol import header
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek.protocol.schema import Message, spec
from tests.fuzz.worst_requests import MANY, Worst, framed, names

_INIT_VERSION = 4
_LONGEST_ID = 32_767 - 2  # a key of a record has a length of 16 bits, and the id is all but its type
_SERVED = 1000
"""Partitions of the topic `many`."""
_numbers = count()


def _init(transactional_id: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id, 60_000)


def _then(request: Callable[[int, int], Message], version: int) -> Callable[[bytes], Iterator[bytes]]:
    """Return what makes the later requests, of the producer id and epoch that InitProducerId answered."""

    def follow(answer: bytes) -> Iterator[bytes]:
        key = spec(InitProducerIdRequest).key
        assert key is not None
        _, given = header.decode_response(key, _INIT_VERSION, answer)
        assert isinstance(given, InitProducerIdResponse)
        frame = framed(request(given.producer_id, given.producer_epoch), version)
        while True:
            yield frame

    return follow


def _new_ids(length: int) -> Callable[[bytes], Iterator[bytes]]:
    """Return what makes InitProducerId requests, each of a new transactional id of this length."""
    return lambda _: (framed(_init(f"{next(_numbers):0{length}d}"), _INIT_VERSION) for _ in count())


def _add(producer_id: int, epoch: int, indexes: list[int]) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(MANY, indexes)]
    return AddPartitionsToTxnRequest([], "worst", producer_id, epoch, topics)


def _add_as_broker(named: list[str]) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(MANY, [0])]
    return AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(name, 1, 0, False, topics) for name in named])


def _commit(producer_id: int, epoch: int, indexes: list[int]) -> TxnOffsetCommitRequest:
    rows = [TxnOffsetCommitRequestPartition(index, 1, committed_metadata="m" * 20) for index in indexes]
    return TxnOffsetCommitRequest("worst", "g", producer_id, epoch, topics=[TxnOffsetCommitRequestTopic(MANY, rows)])


def _markers(producer_ids: range, indexes: list[int]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        [
            WritableTxnMarker(producer_id, 0, False, [WritableTxnMarkerTopic(MANY, indexes)], 0)
            for producer_id in producer_ids
        ]
    )


def _served(rows: int) -> list[int]:
    return [index % _SERVED for index in range(rows)]


def worst_of_transactions(megabytes: float) -> list[Worst]:
    """Return the kinds; their later requests have about this size."""
    size = int(megabytes * 1_000_000)
    rows = min(size // 4, 99_000)  # a request with 100,000 elements is refused
    return [
        Worst(
            "AddPartitionsToTxn, partitions",
            _INIT_VERSION,
            lambda _: _init("worst"),
            _then(lambda producer_id, epoch: _add(producer_id, epoch, _served(rows)), 3),
        ),
        Worst("AddPartitionsToTxn, unknown partitions", 3, lambda size: _add(1, 0, list(range(_SERVED, rows)))),
        Worst("AddPartitionsToTxn, transactions", 5, lambda size: _add_as_broker(names(size // 40))),
        Worst(
            "TxnOffsetCommit, every partition",
            _INIT_VERSION,
            lambda _: _init("worst"),
            _then(lambda producer_id, epoch: _commit(producer_id, epoch, _served(size // 40)), 5),
        ),
        Worst("TxnOffsetCommit, unknown partitions", 5, lambda size: _commit(1, 0, [10_000] * (size // 40))),
        Worst(
            "WriteTxnMarkers, unknown partitions",
            1,
            lambda size: _markers(range(1), list(range(10_000, 10_000 + rows))),
        ),
        Worst("WriteTxnMarkers, forged ids", 1, lambda size: _markers(range(10_000, 10_000 + size // 40), [0])),
        Worst("WriteTxnMarkers, every partition", 1, lambda size: _markers(range(1), _served(rows))),
        Worst("InitProducerId, new ids", _INIT_VERSION, lambda _: _init("first"), _new_ids(8)),
        Worst("InitProducerId, long ids", _INIT_VERSION, lambda _: _init("first"), _new_ids(_LONGEST_ID)),
        Worst("DescribeTransactions", 0, lambda size: DescribeTransactionsRequest(names(min(size // 9, 99_000)))),
        Worst(
            "ListTransactions, states",
            1,
            lambda size: ListTransactionsRequest(state_filters=names(min(size // 8, 99_000))),
        ),
    ]
