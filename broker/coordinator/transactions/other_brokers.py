"""The interface of the other brokers of a cluster: the requests that transactions send to them."""

from __future__ import annotations

from typing import Protocol

from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class OtherBrokers(Protocol):
    """Sends requests to brokers by node id. Both methods raise KafkaError NETWORK_EXCEPTION if there is no response."""

    async def write_markers(self, node_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Have a leader write markers."""
        ...

    async def add_partitions(self, node_id: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        """Have a coordinator add partitions to transactions, or verify that they are in them."""
        ...
