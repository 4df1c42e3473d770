from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.wire import Wire


@pytest.fixture(autouse=True)
async def users(wire: Wire) -> AsyncIterator[None]:
    """Alice and bob, of whom alice has credentials for both mechanisms."""
    for changes in ([("alice", 1, 4096, 32), ("bob", 2, 16384, 64)], [("alice", 2, 8192, 64)]):
        upsertions = [ScramCredentialUpsertion(*change, b"salt", b"x" * size) for *change, size in changes]
        await wire.ask(AlterUserScramCredentialsRequest([], upsertions), 0)
    yield
    for deletions in ([("alice", 1), ("bob", 2)], [("alice", 2)]):
        await wire.ask(AlterUserScramCredentialsRequest([ScramCredentialDeletion(*each) for each in deletions]), 0)


@pytest.mark.parametrize("everybody", [None, []])
async def test_everybody_is_listed(wire: Wire, everybody: list[UserName] | None) -> None:
    response = await wire.ask(DescribeUserScramCredentialsRequest(everybody), 0)

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
    credentials = {
        row.user: [(info.mechanism, info.iterations) for info in row.credential_infos] for row in response.results
    }
    assert {name: sorted(infos) for name, infos in credentials.items()} == {
        "alice": [(1, 4096), (2, 8192)],
        "bob": [(2, 16384)],
    }
    assert {(row.error_code, row.error_message) for row in response.results} == {(ErrorCode.NONE, "")}


async def test_each_named_user_has_a_row(wire: Wire) -> None:
    users = [UserName(name) for name in ("alice", "once", "bob", "bob", "twice", "twice", "")]

    response = await wire.ask(DescribeUserScramCredentialsRequest(users), 0)

    assert response.error_code == ErrorCode.NONE
    assert {row.user: (row.error_code, row.error_message) for row in response.results} == {
        "alice": (ErrorCode.NONE, ""),
        "once": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: once",
        ),
        "bob": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
        ),
        "twice": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: twice",
        ),
        "": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: "),
    }
    assert [row.user for row in response.results if row.credential_infos] == ["alice"]
