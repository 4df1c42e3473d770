"""Producers with transactions: librdkafka's, with version 1 of the protocol, and the bundled one, with version 2.

Each sends transactions until the run is over, some of which it aborts, and notes what it learned of each.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as ConfluentProducer

from odradek.client import (
    BootstrapError,
    CommitUnknownError,
    ProducerFencedError,
    TimeLimitError,
    TransactionAbortedError,
    TransportError,
)
from odradek.client import Producer as BundledProducer
from odradek.client import Transaction as OpenTransaction
from tests.checker.history import History, Outcome, Transaction, Write

TOPIC = "checked"
PARTITIONS = 3
QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
}
_LOGGER = logging.getLogger("tests.checker.librdkafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False
QUIET = {"logger": _LOGGER}
"""librdkafka reports each lost connection and each fenced producer, of which a run has many."""
_OPEN_MS = 30_000
"""The time-out of a transaction."""


class Run(NamedTuple):
    """The task of one producer; `note` gets each transaction when it has ended, `history` what else there is."""

    bootstrap: str
    transactional_id: str
    name: str
    random: Random
    timeout: float
    over: threading.Event
    note: Callable[[Transaction], None]
    history: History


class _Attempt:
    """The contents of one transaction, and what its producer has learned of it."""

    def __init__(self, name: str, random: Random) -> None:
        self.commits = random.random() < 0.7
        self.writes = {f"{name}-{index}": random.randrange(PARTITIONS) for index in range(random.randrange(1, 6))}
        self.offsets: dict[str, int] = {}
        self.outcome = Outcome.ABORTED
        self._name = name

    def result(self) -> Transaction:
        writes = [Write(partition, value, self.offsets.get(value)) for value, partition in self.writes.items()]
        return Transaction(self._name, self.outcome, tuple(writes))


# ------------------------------------------------------------------------------------------------------- librdkafka


def produce_as_confluent(run: Run) -> None:
    producer = None
    for count in itertools.count():
        if run.over.is_set():
            return
        if producer is None:
            producer = _confluent(run.bootstrap, run.transactional_id, run.timeout)
        attempt = _Attempt(f"{run.name}-{count}", run.random)
        usable = _attempt_as_confluent(producer, attempt, run.timeout)
        run.note(attempt.result())
        if not usable:
            producer = None


def end_open(bootstrap: str, transactional_id: str, timeout: float) -> None:
    """End the transaction that a producer has left open."""
    _confluent(bootstrap, transactional_id, timeout)


def _confluent(bootstrap: str, transactional_id: str, timeout: float) -> ConfluentProducer:
    """A producer that is ready; another one with the same id may fence it at once."""
    while True:
        properties = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": _OPEN_MS,
            "message.timeout.ms": _OPEN_MS,
            "linger.ms": 1,
            **QUICK,
        }
        producer = ConfluentProducer(properties, **QUIET)
        try:
            producer.init_transactions(timeout)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:  # noqa: SLF001
                raise TimeoutError(f"no producer for {transactional_id} within {timeout} s") from error
            if not error.args[0].retriable() and not error.args[0].fatal():
                raise
        else:
            return producer


def _attempt_as_confluent(producer: ConfluentProducer, attempt: _Attempt, timeout: float) -> bool:
    """Send the records and end the transaction; return whether the producer can be used again."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            attempt.offsets[message.value().decode()] = message.offset()

    try:
        producer.begin_transaction()
        for value, partition in attempt.writes.items():
            producer.produce(TOPIC, value.encode(), partition=partition, on_delivery=delivered)
        if attempt.commits:
            attempt.outcome = Outcome.UNKNOWN
            _repeat(producer.commit_transaction, timeout)
            attempt.outcome = Outcome.COMMITTED
        else:
            _repeat(producer.abort_transaction, timeout)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            return False
        try:
            _repeat(producer.abort_transaction, timeout)
        except KafkaException:
            return False
        attempt.outcome = Outcome.ABORTED
    return True


def _repeat(end: Callable[[float], Any], timeout: float) -> None:
    """End a transaction; a call that may be repeated is, once after it has timed out."""
    for _ in range(2):
        try:
            return end(timeout)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
    raise TimeoutError(f"a transaction did not end within {2 * timeout} s")


# ----------------------------------------------------------------------------------------------- the bundled client


class _AbortWantedError(Exception):
    """Makes the block of a transaction abort."""


@contextmanager
def quiet_bundled_clients() -> Iterator[None]:
    """Suppress the log lines of bundled clients about lost connections, and restore their level at the end."""
    logger = logging.getLogger("odradek.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def produce_as_bundled(run: Run) -> None:
    asyncio.run(_produce_as_bundled(run))


async def _produce_as_bundled(run: Run) -> None:
    count = 0
    while not run.over.is_set():
        try:
            async with asyncio.timeout(run.timeout):
                producer = BundledProducer(
                    run.bootstrap,
                    transactional_id=run.transactional_id,
                    transaction_timeout_ms=_OPEN_MS,
                    linger_ms=1,
                    reconnect_backoff_ms=10,
                    reconnect_backoff_max_ms=50,
                )
                await producer.start()
        except ProducerFencedError:
            continue
        except (BootstrapError, TransportError):  # the server is just being killed
            await asyncio.sleep(0.02)
            continue
        usable = True
        while usable and not run.over.is_set():
            count += 1
            attempt = _Attempt(f"{run.name}-{count}", run.random)
            async with asyncio.timeout(2 * run.timeout):
                usable = await _attempt_as_bundled(producer, attempt)
            run.note(attempt.result())
        await producer.close(0)


async def _attempt_as_bundled(producer: BundledProducer[bytes, bytes], attempt: _Attempt) -> bool:
    """Send the records and end the transaction; return whether the producer can be used again."""
    transaction = producer.transaction()
    try:
        async with transaction:
            sent = {
                value: await producer.send(TOPIC, value.encode(), partition=partition)
                for value, partition in attempt.writes.items()
            }
            for value, future in sent.items():
                attempt.offsets[value] = (await future).offset
            _begin_end(attempt)
        attempt.outcome = Outcome.COMMITTED
    except (_AbortWantedError, TransactionAbortedError):
        attempt.outcome = Outcome.ABORTED
    except ProducerFencedError:
        return False
    except (CommitUnknownError, TimeLimitError):
        return await _commit_again(transaction, attempt)
    return True


def _begin_end(attempt: _Attempt) -> None:
    if not attempt.commits:
        raise _AbortWantedError
    attempt.outcome = Outcome.UNKNOWN


async def _commit_again(transaction: OpenTransaction, attempt: _Attempt) -> bool:
    if attempt.outcome is not Outcome.UNKNOWN:
        return False
    try:
        await transaction.commit()
    except TransactionAbortedError:
        attempt.outcome = Outcome.ABORTED
    except ProducerFencedError:
        attempt.outcome = Outcome.ABORTED
        return False
    except CommitUnknownError:
        return False
    else:
        attempt.outcome = Outcome.COMMITTED
    return True
