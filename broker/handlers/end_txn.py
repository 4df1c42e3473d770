"""EndTxn (26), versions 0–5: commit or abort a transaction (KIP-98, KIP-890).

The answer is sent when the decision is in the coordinator's log; from version 5 on it has the id and epoch for the next
transaction. Which end is accepted in which state: `odradek.broker.coordinator.transactions.end_transaction`. An empty
transactional id is INVALID_REQUEST, one that the client may not write to TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH below version 2.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.transactions.events import EndTransaction
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.broker.request.transactional_ids import check_transactional_id, submit
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

_FIRST_VERSION_WITH_FENCED_CODE = 2
_FIRST_VERSION_WITH_EPOCH_BUMPS = 5


def handle(
    services: Services, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    check(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    check_transactional_id(request.transactional_id)
    event = EndTransaction(
        PendingReply(),
        request.producer_id,
        request.producer_epoch,
        request.committed,
        version=2 if context.api_version >= _FIRST_VERSION_WITH_EPOCH_BUMPS else 0,
    )
    has_fenced_code = context.api_version >= _FIRST_VERSION_WITH_FENCED_CODE
    reply = submit(services, request.transactional_id, event, has_fenced_code=has_fenced_code)
    return cast("EndTxnResponse | Awaitable[EndTxnResponse]", reply)


def error_response(request: EndTxnRequest, code: ErrorCode, message: str) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)
