"""DescribeAcls, CreateAcls and DeleteAcls, on a broker without access rules."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from tests.wire import Wire

DISABLED = ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_there_are_no_access_rules(wire: Wire, version: int) -> None:
    described = await wire.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version)
    rule = AclCreation(2, "t", 3, "User:x", "*", 3, 3)
    created = await wire.ask(CreateAclsRequest([rule, rule]), version)
    deleted = await wire.ask(DeleteAclsRequest([DeleteAclsFilter(2, None, 1, None, None, 1, 1)]), version)

    assert (described.error_code, described.resources) == (DISABLED, [])
    assert [result.error_code for result in created.results] == [DISABLED, DISABLED]
    assert [result.error_code for result in deleted.filter_results] == [DISABLED]
    assert all(row.error_message for row in (described, *created.results, *deleted.filter_results))
