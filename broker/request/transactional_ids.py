"""The part of the requests of transactional producers that their handlers share.

PRODUCER_FENCED is newer than the requests (KIP-588): versions that do not have it get INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Awaitable

from odradek.broker.coordinator.transactions.events import AddPartitions, EndTransaction, InitProducerId
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Structure


def check_transactional_id(transactional_id: str) -> None:
    """Raise KafkaError INVALID_REQUEST for the empty id."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")


def submit(
    services: Services,
    transactional_id: str,
    event: InitProducerId | AddPartitions | EndTransaction,
    *,
    has_fenced_code: bool,
) -> Structure | Awaitable[Structure]:
    """Submit the event to the coordinator; return its reply, or an awaitable of it. Raises KafkaError from both."""
    try:
        reply = services.transactions.submit(transactional_id, event)
    except KafkaError as error:
        raise _as_version(error, has_fenced_code) from error
    return reply if isinstance(reply, Structure) else _wait(reply, has_fenced_code)


async def _wait(reply: Awaitable[Structure], has_fenced_code: bool) -> Structure:
    try:
        return await reply
    except KafkaError as error:
        raise _as_version(error, has_fenced_code) from error


def _as_version(error: KafkaError, has_fenced_code: bool) -> KafkaError:
    if has_fenced_code or error.code is not ErrorCode.PRODUCER_FENCED:
        return error
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.detail)
