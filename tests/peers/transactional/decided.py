"""The transactions that are decided and have not ended: in PrepareCommit or PrepareAbort, as admin clients see them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from tests.peers.server import Server
from tests.wire import Wire

_PREPARED = ["PrepareCommit", "PrepareAbort"]
_PAUSE = 0.05
_ANSWER = 20.0


class Decided(NamedTuple):
    """One transaction; a later one of the id has another epoch or began later."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    start_time_ms: int


def decided(servers: Sequence[Server]) -> set[Decided]:
    """Return the decided transactions of these brokers. Raises OSError while one of them does not serve."""
    return asyncio.run(_decided(servers))


async def _decided(servers: Sequence[Server]) -> set[Decided]:
    found: set[Decided] = set()
    for server in servers:
        async with asyncio.timeout(_ANSWER), Wire(server.host, server.port) as wire:
            listed = await wire.ask(ListTransactionsRequest(state_filters=_PREPARED), 0)
            _check(listed.error_code)
            ids = [each.transactional_id for each in listed.transaction_states]
            for each in (await wire.ask(DescribeTransactionsRequest(ids), 0)).transaction_states:
                _check(each.error_code)
                if each.transaction_state in _PREPARED:
                    start = each.transaction_start_time_ms
                    found.add(Decided(each.transactional_id, each.producer_id, each.producer_epoch, start))
    return found


def _check(code: int) -> None:
    if code:
        raise ConnectionError(ErrorCode.of(code).name)


def stuck(servers: Sequence[Server], seconds: float) -> set[Decided]:
    """Return the transactions that are decided now, and still are after `seconds`; none as soon as all have ended.

    Nothing may be disturbed meanwhile: every partition has a leader that lives. Raises TimeoutError if the coordinators
    do not serve within that time.
    """
    give_up_at = time.monotonic() + seconds
    remaining: set[Decided] | None = None
    while remaining is None or remaining:
        with suppress(OSError, EOFError):
            now = decided(servers)
            remaining = now if remaining is None else remaining & now
        if time.monotonic() >= give_up_at:
            break
        threading.Event().wait(_PAUSE)
    if remaining is None:
        raise TimeoutError(f"the coordinators do not serve within {seconds} s")
    return remaining
