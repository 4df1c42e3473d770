"""`acls` decides as the authorizer of a broker does, whatever the spelling of an address."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.broker.security.principal import Principal
from odradek.client import AclOperation, AclResourceType, AclRule, Admin
from odradek.protocol.access_rules import Operation, ResourceType
from tests.client.cli.commands import run, run_json

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
SPELLINGS = ("2001:DB8::7", "2001:db8:0:0:0:0:0:7", "2001:0db8::0007")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(AUTHORIZER) as broker:
        yield broker


@pytest.mark.parametrize("rule", SPELLINGS)
@pytest.mark.parametrize("asked", SPELLINGS)
async def test_a_rule_is_for_an_address_in_every_spelling(broker: Broker, rule: str, asked: str) -> None:
    at = ("--bootstrap-server", broker.bootstrap, "--topic", "t")
    deny = ("--deny-principal", "User:a", "--deny-host", rule)
    await run("acls", "add", *at, "--allow-principal", "User:a", *deny)
    check = ("acls", "check", *at, "--principal", "User:a", "--operation", "Read", "--host")

    checked = await run_json(*check, asked, status=1)

    assert (checked["allowed"], checked["rule"]["permission"]) == (False, "deny")
    assert (await run_json(*check, "2001:db8::8"))["allowed"]
    authorizer = broker.services.authorizer
    assert authorizer is not None
    for last, allowed in (("7", False), ("8", True)):
        address = f"2001:db8::{last}"  # as the broker writes the address of a connection
        assert authorizer.allows(Principal("User", "a"), address, Operation.READ, ResourceType.TOPIC, "t") is allowed
    await run("acls", "remove", *at, *deny[:-1], asked)
    assert [row["permission"] for row in await run_json("acls", "list", *at)] == ["allow"]


async def test_rules_of_other_tools_are_removed_by_their_spelling(broker: Broker) -> None:
    for host in ("2001:DB8::7", "2001:db8::7", "::FFFF:10.0.0.7"):
        rule = AclRule(
            resource_type=AclResourceType.TOPIC,
            resource_name="t",
            principal="User:a",
            host=host,
            operation=AclOperation.ALL,
        )
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_acls([rule])).values_or_raise()
        at = ("--bootstrap-server", broker.bootstrap, "--topic", "t")
        await run("acls", "remove", *at, "--allow-principal", "User:a", "--allow-host", host)
        assert await run_json("acls", "list", *at) == []


async def test_check_refuses_a_host_that_no_broker_sees() -> None:
    check = ("acls", "check", "--topic", "t", "--principal", "User:a", "--operation", "Read", "--host")
    _, err = await run(*check, "localhost", status=2)
    assert "argument --host: 'localhost' is not an IP address" in err
