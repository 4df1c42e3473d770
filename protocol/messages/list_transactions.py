"""ListTransactions (API key 66)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i64, message, since, string


@message(key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsRequest(Message):
    """ListTransactionsRequest, versions 0–2, flexible."""

    state_filters: list[string] = []
    producer_id_filters: list[i64] = []
    duration_filter: Annotated[i64, since(1)] = -1
    transactional_id_pattern: Annotated[string | None, since(2)] = None


class TransactionState(Structure):
    transactional_id: string = ""
    producer_id: i64 = 0
    transaction_state: string = ""


@message(key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsResponse(Message):
    """ListTransactionsResponse, versions 0–2, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[string] = []
    transaction_states: list[TransactionState] = []
