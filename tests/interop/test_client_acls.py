"""The commands `acls`, `users`, `quotas` beside Kafka's own tools, and `check` beside both authorizers."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from odradek.client import (
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    AclRule,
    Admin,
    NewTopic,
)
from odradek.client.admin.acl_evaluation import Request, decide
from odradek.client.config import Address
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.connections import authenticator_of
from odradek.client.network.transport import TcpNetwork
from odradek.client.security.settings import SecuritySettings
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.client.cli.commands import run
from tests.peers import java
from tests.peers.secured_server import SecuredServer

pytestmark = pytest.mark.java

LINES = [
    "--allow-principal User:alice --operation Read --operation Write --topic orders --topic payments",
    "--allow-principal User:alice --deny-principal User:bob --deny-host 10.0.0.1 --topic orders --group g",
    "--allow-principal User:carol --producer --topic orders --transactional-id t --idempotent",
    "--allow-principal User:carol --consumer --topic o --group g --resource-pattern-type prefixed",
    "--allow-principal User:dora --producer --consumer --topic orders --group g",
    "--allow-principal User:alice --cluster --operation AlterConfigs",
    "--allow-principal User:alice --user-principal User:bob --operation CreateTokens",
]
"""Command lines of kafka-acls.sh, without --add."""


@pytest.fixture
def place(secured: SecuredServer) -> tuple[str, ...]:
    return secured.admin_flags()


@pytest.fixture
async def admin(secured: SecuredServer) -> Any:
    async with secured.admin() as admin:
        (await admin.delete_acls([AclFilter()])).values_or_raise()
        yield admin
        (await admin.delete_acls([AclFilter()])).values_or_raise()


@pytest.mark.parametrize("line", LINES)
async def test_the_same_flags_make_the_same_rules_as_kafkas_tool(
    admin: Admin, place: tuple[str, ...], line: str
) -> None:
    flags = line.split()
    java.run(java.ACL_COMMAND, *place, "--add", "--force", *flags)
    async with asyncio.timeout(30):
        while not (theirs := set(await admin.describe_acls())):
            pass
    printed, _ = await run("acls", *place, "remove", *flags, "--dry-run", "--json")
    assert len(json.loads(b"\n".join(printed))) == len(theirs)
    await run("acls", *place, "--remove", *flags)
    await applied(admin, set())
    await run("acls", *place, "--add", *flags)
    await applied(admin, theirs)
    java.run(java.ACL_COMMAND, *place, "--remove", "--force", *flags)
    await applied(admin, set())


async def test_a_dry_run_changes_nothing(admin: Admin, place: tuple[str, ...]) -> None:
    flags = ("--allow-principal", "User:alice", "--topic", "orders", "--dry-run")
    printed, _ = await run("acls", *place, "add", *flags)
    assert printed[1].split()[-3:] == [b"would", b"be", b"created"]
    assert await admin.describe_acls() == ()
    await run("acls", *place, "add", *flags[:-1])
    printed, _ = await run("acls", *place, "add", *flags)
    assert printed[1].endswith(b"exists already")
    printed, _ = await run("acls", *place, "remove", *flags)
    assert printed[1].endswith(b"would be removed")
    assert len(await admin.describe_acls()) == 1


async def test_check_names_the_rule_that_decides(admin: Admin, place: tuple[str, ...]) -> None:
    await run("acls", *place, "add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    asked = ("--principal", "User:alice", "--topic", "orders", "--operation")
    printed, _ = await run("acls", *place, "check", *asked, "Describe")
    assert printed == [b"allowed: User:alice may read topic orders"]
    printed, _ = await run("acls", *place, "check", *asked, "Write", status=1)
    assert printed[0] == b"denied: no rule of topic orders allows it"
    denying = ("--deny-principal", "User:*", "--topic", "ord", "--resource-pattern-type", "prefixed")
    await run("acls", *place, "add", *denying)
    printed, _ = await run("acls", *place, "check", *asked, "Read", status=1)
    assert printed[0] == b"denied: User:* may not all topic prefix ord"
    printed, _ = await run(
        "acls", *place, "check", "--principal", "User:a", "--group", "g", "--operation", "Read", status=1
    )
    assert printed[0] == b"denied: group g has no rules (unless allow.everyone.if.no.acl.found is set)"


async def test_check_decides_as_the_authorizer_of_the_broker(secured: SecuredServer, admin: Admin) -> None:
    """Rules at random; `check` allows the operations on a topic that the broker says alice is authorized for."""
    (await admin.create_topics([NewTopic("check-orders", 1)])).values_or_raise()
    chooser = random.Random(23)
    settings = SecuritySettings(**secured.sasl())
    connection = await open_connection(
        TcpNetwork(),
        Address("localhost", secured.ports["SASL_PLAINTEXT"]),
        "kafka",
        client_id="t",
        connect_timeout=10,
        request_timeout=10,
        authenticator=authenticator_of(settings),
    )
    try:
        differed = {await check_some_rules(admin, connection, chooser) for _ in range(150)}
    finally:
        connection.close()
    assert len(differed) > 20


async def check_some_rules(admin: Admin, connection: Connection, chooser: random.Random) -> frozenset[AclOperation]:
    """Compare the operations that the broker and `check` allow under random rules; return them."""
    rules = {random_rule(chooser) for _ in range(chooser.randint(0, 6))}
    (await admin.create_acls(rules)).values_or_raise()
    await applied(admin, rules)
    request = MetadataRequest([MetadataRequestTopic(name="check-orders")], False)
    request.include_topic_authorized_operations = True
    [topic] = (await connection.send(request, MetadataResponse, version=12)).topics
    allowed = frozenset(
        operation
        for operation in OF_TOPICS
        if decide(
            rules, Request("User:alice", "127.0.0.1", operation, AclResourceType.TOPIC, "check-orders")
        ).is_allowed
    )
    told = {operation for operation in OF_TOPICS if topic.topic_authorized_operations >> operation & 1}
    if AclOperation.DESCRIBE in allowed:
        assert told == allowed, rules
    else:
        assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED, rules
    (await admin.delete_acls([AclFilter()])).values_or_raise()
    await applied(admin, set())
    return allowed


async def applied(admin: Admin, rules: set[AclRule]) -> None:
    """Wait until the broker has the rules: it applies a little later what the controller has stored."""
    async with asyncio.timeout(30):
        while set(await admin.describe_acls()) != rules:
            pass


OF_TOPICS = [
    AclOperation[name]
    for name in ("READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
]


def random_rule(chooser: random.Random) -> AclRule:
    return AclRule(
        resource_type=AclResourceType.TOPIC,
        resource_name=chooser.choice(["check-orders", "check-", "*", "check-orders-2", "c", "check-orders"]),
        pattern_type=chooser.choice([AclPatternType.LITERAL, AclPatternType.PREFIXED]),
        principal=chooser.choice(["User:alice", "User:*", "User:bob", "Group:alice", "User:alice"]),
        host=chooser.choice(["*", "127.0.0.1", "10.0.0.1", "*"]),
        operation=chooser.choice([*OF_TOPICS, AclOperation.ALL, AclOperation.DESCRIBE]),
        permission=chooser.choice([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
    )


async def test_users_are_those_of_kafkas_tool(
    secured: SecuredServer, admin: Admin, place: tuple[str, ...], tmp_path: Any
) -> None:
    password = tmp_path / "password"
    password.write_text("typed secret\n")
    out, err = await run(
        "users", *place, "add", "--user", "emma", "--password-file", str(password), "--iterations", "5000"
    )
    assert out == [b"the password of emma is set for SCRAM-SHA-256, SCRAM-SHA-512"]
    described = java.run(
        java.CONFIG_COMMAND, *place, "--describe", "--entity-type", "users", "--entity-name", "emma"
    ).stdout
    assert "SCRAM-SHA-256=iterations=5000" in described
    assert "SCRAM-SHA-512=iterations=5000" in described
    address = secured.address("SASL_PLAINTEXT")
    config = tmp_path / "emma.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="emma" password="typed secret";\n'
    )
    out, _ = await run("cluster", "--bootstrap-server", address, "--command-config", str(config))
    assert b"broker" in out[1].lower()
    changed = "SCRAM-SHA-512=[iterations=8192,password=other]"
    await run("users", *place, "--alter", "--entity-name", "emma", "--add-config", changed)
    await run("users", *place, "remove", "--user", "emma", "--mechanism", "SCRAM-SHA-256")
    out, _ = await run("users", *place, "list", "--user", "emma")
    assert [line.split() for line in out[1:]] == [[b"emma", b"SCRAM-SHA-512", b"8192"]]
    await run("users", *place, "remove", "--user", "emma")
    _, err = await run("users", *place, "list", "--user", "emma", status=1)
    assert "RESOURCE_NOT_FOUND" in err
    _, err = await run(
        "users", *place, "--alter", "--entity-name", "emma", "--add-config", "PLAIN=[password=geheim]", status=2
    )
    assert "geheim" not in err


async def test_quotas_are_those_of_kafkas_tool(admin: Admin, place: tuple[str, ...]) -> None:
    lines = ["--user fred", "--user fred --client-id batch", "--user-defaults", "--ip 127.0.0.8"]
    for line in lines:
        rate = "connection_creation_rate=5" if "--ip" in line else "producer_byte_rate=1000,consumer_byte_rate=2000"
        await run("quotas", *place, "--alter", *line.split(), "--add-config", rate)
    described = java.run(java.CONFIG_COMMAND, *place, "--describe", "--entity-type", "users").stdout
    assert (
        "Quota configs for user-principal 'fred' are consumer_byte_rate=2000.0, producer_byte_rate=1000.0" in described
    )
    assert "Quota configs for the default user-principal are" in described
    out, _ = await run("quotas", *place, "describe", "--user", "fred", "--json")
    rows = json.loads(b"\n".join(out))
    assert {(row["client_id"], row["quota"], row["value"]) for row in rows} == {
        (client, f"{way}_byte_rate", rate)
        for client in (None, "batch")
        for way, rate in (("producer", 1000.0), ("consumer", 2000.0))
    }
    out, _ = await run("quotas", *place, "describe", "--user", "fred", "--strict", "--json")
    assert len(json.loads(b"\n".join(out))) == 2
    for line in lines:
        names = "connection_creation_rate" if "--ip" in line else "producer_byte_rate,consumer_byte_rate"
        await run("quotas", *place, "alter", *line.split(), "--delete-config", names)
    await becomes_empty(place)


async def becomes_empty(place: tuple[str, ...]) -> None:
    for _ in range(50):
        out, _ = await run("quotas", *place)
        if not out:
            return
    assert out == []
