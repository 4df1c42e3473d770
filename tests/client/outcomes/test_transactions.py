"""A campaign by seed: what a producer reports of its transactions, compared with what consumers read.

OUTCOME_SEEDS, a number, makes it longer: `OUTCOME_SEEDS=100 pytest tests/client/outcomes --log-cli-level INFO`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from odradek.client import (
    ClientError,
    Producer,
    ProducerFencedError,
    Transaction,
    TransactionAbortedError,
    TransactionOutcome,
)
from tests.client.outcomes.disturbed import IMPATIENT, PARTITIONS, Disturbed, disturbed
from tests.client.outcomes.test_records import SEEDS
from tests.client.transactions.versions import set_transaction_version

_LOG = logging.getLogger(__name__)

TRANSACTIONS = 12
TOPIC = "t"
ID = "id"


class AbortWantedError(Exception):
    """Aborts the transaction of the block that it leaves."""


@dataclass
class Attempt:
    """One transaction: its values, what its block raised or returned, and what `outcome` returned or raised."""

    values: list[bytes] = field(default_factory=list)
    said: TransactionOutcome | None = None
    outcome: TransactionOutcome | None = None


async def attempt(producer: Producer, name: bytes, random: Random) -> tuple[Attempt, Transaction]:
    """Make a transaction that is committed, aborted, or cancelled while it commits."""
    made = Attempt()
    transaction = producer.transaction()

    async def run() -> None:
        async with transaction:
            for number in range(random.randint(1, 3)):
                value = b"%s-%d" % (name, number)
                made.values.append(value)
                await producer.send(TOPIC, value, partition=random.randrange(PARTITIONS))
                if random.random() < 0.3:
                    await producer.flush()
            if random.random() < 0.2:
                raise AbortWantedError

    running = asyncio.create_task(run())
    if random.random() < 0.2:
        await asyncio.wait((running,), timeout=random.uniform(0, 0.1))
        running.cancel()
    try:
        await running
    except (AbortWantedError, TransactionAbortedError, ProducerFencedError):
        made.said = TransactionOutcome.ABORTED if made.values else None  # without values it was not begun
    except (asyncio.CancelledError, ClientError):
        pass  # it was not begun, or its outcome is unknown yet
    else:
        made.said = TransactionOutcome.COMMITTED
    return made, transaction


async def resolve(made: Attempt, transaction: Transaction, attempts: int) -> None:
    """Await the outcome; a transaction that was not begun has none."""
    for _ in range(attempts):
        with suppress(ClientError):
            made.outcome = await transaction.outcome()
            return


async def run_producers(place: Disturbed) -> list[Attempt]:
    """Make transactions with one producer after the other; each fences the one before."""
    random = place.random
    attempts: list[Attempt] = []
    while len(attempts) < TRANSACTIONS:
        producer = await place.start_producer(transactional_id=ID, transaction_timeout_ms=800)
        usable = True
        while usable and len(attempts) < TRANSACTIONS:
            made, transaction = await attempt(producer, b"%d" % len(attempts), random)
            attempts.append(made)
            if random.random() < 0.15:
                with suppress(ClientError):
                    async with Producer(place.bootstrap, transactional_id=ID, **IMPATIENT):
                        pass  # fences the producer before the outcome is resolved
            await resolve(made, transaction, 5)
            usable = made.outcome is not None and random.random() < 0.8
        await producer.close(200)
    return attempts


def check(attempts: list[Attempt], visible: list[bytes], written: list[bytes]) -> Counter[str]:
    """Compare the outcomes with the log, and count them."""
    counts = Counter(visible)
    assert max(Counter(written).values(), default=1) == 1, "a record is in the log twice"
    found: Counter[str] = Counter()
    for made in attempts:
        seen = [counts[value] for value in made.values]
        if made.said is not None:
            assert made.outcome is made.said, made
        found[made.outcome.value if made.outcome else "unknown"] += 1
        if made.outcome is TransactionOutcome.COMMITTED:
            assert seen == [1] * len(seen), made
        elif made.outcome is TransactionOutcome.ABORTED:
            assert seen == [0] * len(seen), made
        else:
            assert len(set(seen)) <= 1, made
    return found


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_transaction_is_visible_as_its_outcome_says(tmp_path: Path, version: int, seed: int) -> None:
    async with disturbed(tmp_path, seed) as place:
        await set_transaction_version(place.bootstrap, version)
        async with Producer(place.bootstrap) as producer:
            await producer.send_and_wait(TOPIC, b"first", partition=0)
        async with place.faults(0.08):
            attempts = await run_producers(place)
        await place.proxy.drain()
        async with Producer(place.bootstrap, transactional_id=ID):
            pass  # aborts a transaction that is open
        visible = [record.value or b"" for record in await place.read(TOPIC, "read_committed")]
        written = [record.value or b"" for record in await place.read(TOPIC)]
        found = check(attempts, visible, written)
        _LOG.info("seed %d, version %d: %s; %s", seed, version, dict(found), place.proxy.faults)
