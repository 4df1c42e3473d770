"""Markers of transactions, sent by a test in place of their coordinator."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.wire import Wire


async def write_marker(wire: Wire, topic: str, producer_id: int, epoch: int, *, version: int = 0) -> None:
    """Commit a producer's transaction in partition 0 of a topic; `version` is that of the transaction."""
    marker = WritableTxnMarker(producer_id, epoch, True, [WritableTxnMarkerTopic(topic, [0])], 0, version)
    [answered] = (await wire.ask(WriteTxnMarkersRequest([marker]), 2)).markers
    assert answered.topics[0].partitions[0].error_code == ErrorCode.NONE
