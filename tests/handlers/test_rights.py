"""The rights that each API needs: refused without one of them, answered with exactly them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.apis.rights_table import FOR_EVERYBODY, RIGHTS
from odradek.broker.apis.table import ROWS
from odradek.broker.broker import Broker
from odradek.protocol.api import by_key
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.handlers.requests import create
from tests.handlers.rights_cases import CASES, ONLY_FILTERED, Case
from tests.handlers.secured import REFUSALS, allow, coordinate, error_codes, revoke
from tests.wire import Wire


@pytest.fixture
async def admin(secured: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", secured.port, "admin") as connected:
        await create(connected, "t")
        await coordinate(connected)
        committed = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])
        await connected.ask(OffsetCommitRequest("g", topics=[committed]), 9)
        yield connected


def name_of(case: Case) -> str:
    return f"{by_key(case.key).name}-{case.version}-" + "+".join(right[0].name for right in case.rights)


def test_every_api_with_rights_has_a_case() -> None:
    """An API is only here if its handler asks for rights, so a handler that forgets them fails below."""
    with_rights = {key for key in ROWS if RIGHTS[key] != FOR_EVERYBODY}
    assert {case.key for case in CASES} | ONLY_FILTERED == with_rights


ALTERNATIVES = {3: {"CREATE"}, 19: {"CREATE"}, 22: {"WRITE"}, 23: {"CLUSTER_ACTION"}}
"""Operations that the table has only in words, by API."""


def test_the_cases_need_what_the_table_says() -> None:
    """Each operation on each type that the table names has a case, and no case needs another."""
    for key in {case.key for case in CASES}:
        on_resources = RIGHTS[key].on_resources
        listed = {(operation, "CLUSTER") for operation in RIGHTS[key].on_cluster}
        listed |= {(right.operation, right.resource_type.name) for right in on_resources}
        tried = {(operation, kind.name) for case in CASES if case.key == key for operation, kind, _ in case.rights}
        within = {(right.operation, "TOPIC") for right in on_resources if right.when.startswith("of the topics")}
        assert listed - within <= tried
        assert all(operation.name in ALTERNATIVES.get(key, ()) for operation, _ in tried - listed)


@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_a_request_needs_each_of_its_rights_and_no_other(admin: Wire, alice: Wire, case: Case) -> None:
    answers = [await alice.ask(case.request, case.version)]
    if len(case.rights) > 1:
        for missing in case.rights:
            await allow(admin, "alice", *(right for right in case.rights if right is not missing))
            answers.append(await alice.ask(case.request, case.version))
            await revoke(admin, "alice")
    for answer in answers:
        codes = set(error_codes(answer))
        assert codes & REFUSALS, answer
        assert codes <= REFUSALS | {ErrorCode.NONE}, answer

    await allow(admin, "alice", *case.rights)
    assert not set(error_codes(await alice.ask(case.request, case.version))) & REFUSALS
