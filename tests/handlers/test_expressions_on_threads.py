"""Clients' regular expressions are compiled and matched on threads of their own, after the rights are checked."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import re2

from odradek.broker.broker import Broker
from odradek.protocol.access_rules import Operation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from tests.handlers.requests import create
from tests.handlers.secured import GROUP, TRANSACTIONAL_ID, allow, coordinate
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire


class Recorded:
    """A compiled pattern; the test sees what was matched, and on which thread."""

    def __init__(self, compiled: Any, matched: list[tuple[str, str]]) -> None:
        self._compiled = compiled
        self._matched = matched

    def fullmatch(self, text: str) -> Any:
        self._matched.append((_thread(), text))
        return self._compiled.fullmatch(text)


def _thread() -> str:
    return threading.current_thread().name.partition("_")[0]


@pytest.fixture
async def admin(secured: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", secured.port, "admin") as connected:
        await coordinate(connected)
        yield connected


@pytest.fixture
def compiled() -> list[tuple[str, str]]:
    """The thread and the pattern of each call of RE2's compiler."""
    return []


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch, compiled: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The thread and the name of each match."""
    calls: list[tuple[str, str]] = []
    original = re2.compile

    def compile_recorded(pattern: str, options: re2.Options) -> Recorded:
        compiled.append((_thread(), pattern))
        return Recorded(original(pattern, options), calls)

    monkeypatch.setattr(re2, "compile", compile_recorded)
    return calls


def beat(pattern: str, group: str = "expressions") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group, "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_regex=pattern, topic_partitions=[]
    )


async def test_a_subscription_is_compiled_and_matched_on_threads(
    admin: Wire, compiled: list[tuple[str, str]], matched: list[tuple[str, str]]
) -> None:
    await create(admin, "t")
    joined = await admin.ask(beat("thread.?|t"), 1)
    refused = await admin.ask(beat("thread("), 1)
    while not (matched and joined.assignment is not None and joined.assignment.topic_partitions):
        request = ConsumerGroupHeartbeatRequest("expressions", "m", joined.member_epoch)
        joined = await admin.ask(request, 1)

    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert compiled[0] == ("compile", "thread.?|t")
    assert sorted(compiled[1:]) == [("compile", "thread("), ("match", "thread.?|t")]
    assert ("match", "t") in matched
    assert {thread for thread, _ in matched} == {"match"}


async def test_an_expression_is_not_compiled_for_who_may_not_read_the_group(
    alice: Wire, compiled: list[tuple[str, str]], matched: list[tuple[str, str]]
) -> None:
    refused = await alice.ask(beat("hidden("), 1)

    assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert compiled == []


async def test_ids_that_may_be_described_are_matched_on_a_thread(
    admin: Wire, alice: Wire, compiled: list[tuple[str, str]], matched: list[tuple[str, str]]
) -> None:
    await create(admin, "t")
    for transactional_id in ("x", "y" * 40_000, "y1", "z"):
        await TransactionalProducer(admin, transactional_id[:32_000]).start()
    await allow(admin, "alice", (Operation.DESCRIBE, TRANSACTIONAL_ID, "y1"), (Operation.READ, GROUP, "g"))

    of_alice = await alice.ask(ListTransactionsRequest(transactional_id_pattern="y.*|x"), 2)
    alices = list(matched)
    of_admin = await admin.ask(ListTransactionsRequest(transactional_id_pattern="y.*|x"), 2)
    refused = await alice.ask(ListTransactionsRequest(transactional_id_pattern="y("), 2)

    assert [row.transactional_id for row in of_alice.transaction_states] == ["y1"]
    assert {row.transactional_id for row in of_admin.transaction_states} == {"x", "y1", "y" * 32_000}
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert {text for _, text in alices} == {"y1"}
    assert {thread for thread, _ in matched} == {"match"}
    assert {thread for thread, _ in compiled} <= {"compile", "match"}
