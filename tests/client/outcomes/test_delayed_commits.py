"""A request to commit that a network delays: its outcome is resolved, and it ends no other transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.client import CommitUnknownError, Consumer, Producer, TransactionOutcome
from odradek.protocol.errors import ErrorCode
from tests.client.provoked_errors import provokes
from tests.client.transactions.versions import set_transaction_version
from tests.peers.holding_proxy import HoldingProxy
from tests.peers.server import free_port

END_TXN = 26


class AbortWantedError(Exception):
    """Aborts the transaction of the block that it leaves."""


@provokes(CommitUnknownError)
@pytest.mark.parametrize("version", [1, 2])
async def test_a_delayed_commit_is_resolved_and_does_not_end_the_next_transaction(tmp_path: Path, version: int) -> None:
    port, proxy_port = free_port(), free_port()
    properties = {
        "log.dirs": str(tmp_path),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}",
        "transaction.state.log.num.partitions": "1",
    }
    async with Broker(properties), HoldingProxy(proxy_port, port).listening() as proxy:
        await set_transaction_version(proxy.bootstrap, version)
        async with Producer(
            proxy.bootstrap, transactional_id="id", linger_ms=0, request_timeout_ms=3000, max_block_ms=2000
        ) as producer:
            held = proxy.hold(END_TXN)
            transaction = producer.transaction()
            with pytest.raises(CommitUnknownError, match=r"await outcome\(\) of the transaction"):
                async with transaction:
                    await producer.send("t", b"first", partition=0)
            assert await transaction.outcome() is TransactionOutcome.COMMITTED
            with pytest.raises(AbortWantedError):  # noqa: PT012 - the block is what is tested
                async with producer.transaction():
                    await producer.send_and_wait("t", b"aborted", partition=0)
                    assert (await held.release()).error_code == ErrorCode.PRODUCER_FENCED
                    raise AbortWantedError
            async with producer.transaction():
                await producer.send("t", b"last", partition=0)
        async with Consumer(
            proxy.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            consumer.assign([("t", 0)])
            values = []
            while b"last" not in values:
                values += [record.value for record in await consumer.poll(100)]
        assert values == [b"first", b"last"]
