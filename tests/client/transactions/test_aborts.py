"""An abort at the same moment as a commit of the same transaction."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from odradek.client import ConfigurationError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest
from tests.client.transactions.test_transactions import cluster, producer_of, refuse_end
from tests.client.virtual_time import simulated


@simulated
async def test_an_abort_in_any_turn_of_a_commit_that_is_refused_is_sent() -> None:
    for turns in range(1, 60):
        network, _, _ = cluster(1)
        network.brokers[1].script("EndTxn", refuse_end(ErrorCode.INVALID_TXN_STATE))
        async with producer_of(network) as producer:
            transaction = await producer.transaction().__aenter__()
            await producer.send_and_wait("t", b"1")
            committing = asyncio.create_task(transaction.commit())
            for _ in range(turns):
                await asyncio.sleep(0)
            with suppress(ConfigurationError):  # the commit was sent, or the transaction has ended
                await transaction.abort()
                assert not network.brokers[1].received(EndTxnRequest)[-1].committed, turns
            await asyncio.gather(committing, return_exceptions=True)
