"""ListTransactions (66), versions 0–2: the transactional ids that this broker coordinates (KIP-664).

A request may filter by state, producer id, age of the transaction (version 1, KIP-994), and a pattern of ids (version
2, KIP-1152), which must match the whole id. Empty lists and an empty pattern match all. Unknown states are returned,
and match no id. A pattern that RE2 refuses is INVALID_REGULAR_EXPRESSION. While a partition is being loaded the answer
is COORDINATOR_LOAD_IN_PROGRESS, because the list would be incomplete; and COORDINATOR_NOT_AVAILABLE while another
broker may coordinate one (`replication.fencing`).

Ids that the client may not describe are omitted.

A pattern is compiled, and matched with the ids that the client may describe, in threads: see `regular_expressions`.

An id that has had no transaction since its InitProducerId has the start −1, so that every age includes it, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.coordinator.consumer_group.regular_expressions import check, matching, refusal
from odradek.broker.coordinator.transactions.transaction import STATUS_OF_LABEL, Transaction
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import TimeSlice
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

_MATCHED_AT_ONCE = 32_768
"""The characters of ids that are matched in one piece of work of the thread: of the slowest pattern, about a second."""


async def handle(
    services: Services, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    _check_loaded(services)
    pattern = request.transactional_id_pattern
    if pattern:
        await services.threads.compile(refusal, pattern)
        check(pattern)
        _check_loaded(services)
    unknown = [name for name in request.state_filters if name not in STATUS_OF_LABEL]
    is_wanted = _filter(request, services.clock.time_ms())
    time_slice = services.time_slices.begin(context.connection)
    rows = []
    for shard in services.transactions.shards():
        for transactional_id, state in tuple(shard.transactions.items()):
            await time_slice.step()
            if is_wanted(state) and allows(
                services, context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id
            ):
                rows.append(TransactionState(transactional_id, state.producer_id, state.status.label))
    if pattern:
        rows = await _matching(services, pattern, rows, time_slice)
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows)


def error_response(request: ListTransactionsRequest, code: ErrorCode, message: str) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code)


def _check_loaded(services: Services) -> None:
    if services.transactions.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "transactions are being loaded")
    if services.transactions.is_fenced:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "another broker may coordinate them: the session ended")


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    """Return the function that tests a state, without the pattern."""
    states = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)
    duration_ms = request.duration_filter

    def is_wanted(state: Transaction) -> bool:
        return (
            (not states or state.status.label in states)
            and (not producer_ids or state.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - state.start_ms > duration_ms)
        )

    return is_wanted


async def _matching(
    services: Services, pattern: str, rows: list[TransactionState], time_slice: TimeSlice
) -> list[TransactionState]:
    """Return the rows whose ids match. Several requests take turns in the thread, each with `_MATCHED_AT_ONCE`."""
    matching_rows, some, size = list[TransactionState](), list[TransactionState](), 0
    for row in (*rows, None):
        await time_slice.step()
        if row is None or size > _MATCHED_AT_ONCE:
            found = await services.threads.match(matching, pattern, [each.transactional_id for each in some])
            matching_rows += [each for each in some if each.transactional_id in found]
            some, size = [], 0
        if row is not None:
            some.append(row)
            size += len(row.transactional_id)
    return matching_rows
