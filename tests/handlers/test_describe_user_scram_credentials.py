"""DescribeUserScramCredentials, on a broker without credentials."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.wire import Wire


@pytest.mark.parametrize("everybody", [None, []])
async def test_nobody_is_listed(wire: Wire, everybody: list[UserName] | None) -> None:
    response = await wire.ask(DescribeUserScramCredentialsRequest(everybody), 0)

    assert (response.error_code, response.results) == (ErrorCode.NONE, [])


async def test_named_users_are_not_found(wire: Wire) -> None:
    users = [UserName(name) for name in ("once", "twice", "twice", "")]

    response = await wire.ask(DescribeUserScramCredentialsRequest(users), 0)

    assert response.error_code == ErrorCode.NONE
    assert {row.user: row.error_code for row in response.results} == {
        "once": ErrorCode.RESOURCE_NOT_FOUND,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert all(row.error_message and row.credential_infos == [] for row in response.results)
