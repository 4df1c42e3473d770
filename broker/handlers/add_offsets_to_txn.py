"""AddOffsetsToTxn (25), versions 0–4: add the offsets of a group to a transaction (KIP-98).

The group's partition of `__consumer_offsets` becomes part of the transaction, as by AddPartitionsToTxn, with the same
errors. Producers of version 2 of the protocol do not send it: their TxnOffsetCommit adds the partition.
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH below version 2.

The client needs the rights to write to the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED) and to read the
group (GROUP_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Awaitable

from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.runtime.internal_topic import partition_of
from odradek.broker.coordinator.transactions.events import AddPartitions
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.broker.request.transactional_ids import check_transactional_id, submit
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.schema import Structure

_FIRST_VERSION_WITH_FENCED_CODE = 2


def handle(
    services: Services, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    check(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    check_transactional_id(request.transactional_id)
    topic = services.metadata.image.topics.get(CONSUMER_OFFSETS)
    count = services.config.offsets_topic_num_partitions if topic is None else len(topic.partitions)
    partition = (CONSUMER_OFFSETS, partition_of(request.group_id, count))
    event = AddPartitions(
        PendingReply(), request.producer_id, request.producer_epoch, frozenset((partition,)), version=0
    )
    has_fenced_code = context.api_version >= _FIRST_VERSION_WITH_FENCED_CODE
    reply = submit(services, request.transactional_id, event, has_fenced_code=has_fenced_code)
    return AddOffsetsToTxnResponse() if isinstance(reply, Structure) else _wait(reply)


def error_response(request: AddOffsetsToTxnRequest, code: ErrorCode, message: str) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)


async def _wait(reply: Awaitable[Structure]) -> AddOffsetsToTxnResponse:
    await reply
    return AddOffsetsToTxnResponse()
