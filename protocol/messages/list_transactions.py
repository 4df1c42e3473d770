"""ListTransactions (API key 66): an admin client lists the transactional ids that a broker coordinates (KIP-664)."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, since, string


@message(key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsRequest(Message):
    """Versions 0–2, flexible.

    v1 can filter by age (KIP-994), v2 by a pattern of ids (KIP-1152).
    """

    state_filters: list[string] = []  # empty for all, as are the other lists
    producer_id_filters: list[i64] = []
    duration_filter: Annotated[i64, since(1)] = -1  # open for longer than this (ms); negative for all
    # A regular expression (RE2/J); None or empty for all.
    transactional_id_pattern: Annotated[string | None, since(2)] = None


class TransactionState(Structure):
    transactional_id: string = ""
    producer_id: i64 = 0
    transaction_state: string = ""


@message(key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsResponse(Message):
    """Versions 0–2, flexible; v2 may return INVALID_REGULAR_EXPRESSION (128) (KIP-1152)."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[string] = []  # requested states that the coordinator does not know
    transaction_states: list[TransactionState] = []
