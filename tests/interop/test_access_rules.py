"""The same administration of access rules on Apache Kafka and here, and the same requests of several principals.

On Kafka's side the principals come from SASL/PLAIN, here from the client ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.effort import cases
from tests.handlers.requests import create
from tests.handlers.rights_cases import CASES, Case
from tests.handlers.secured import FEW_LOGS, coordinate, secure
from tests.interop.differential.access_rules import (
    ADMINISTRATION,
    DECISIONS,
    DELETE_EVERY_RULE,
    EVERY_RULE,
    TOPICS,
    creating,
    random_rules,
    rule,
)
from tests.interop.differential.playing import Difference, Seen, Step, differences_of
from tests.peers import apache, java
from tests.peers.server import Server, free_port
from tests.wire import Wire

USERS = ("admin", "alice", "bob")

pytestmark = pytest.mark.java


class Sides:
    """Connections of each principal to both servers."""

    def __init__(self, wires: dict[str, tuple[Wire, Wire]], seen: tuple[Seen, Seen]) -> None:
        self.wires = wires
        self._seen = seen

    async def differences(self, principal: str, step: Step) -> list[Difference]:
        return await differences_of(step, list(zip(self.wires[principal], self._seen, strict=True)))

    async def clear(self) -> None:
        """Delete all rules: those of an earlier test exist on Kafka only."""
        for wire in self.wires["admin"]:
            await wire.ask(DELETE_EVERY_RULE, 3)
        await self.play("admin", EVERY_RULE)

    async def play(self, principal: str, *steps: Step) -> None:
        """Play a script, whose responses must be equal."""
        found = {number: each for number, step in enumerate(steps) if (each := await self.differences(principal, step))}
        assert found == {}, {number: steps[number].request for number in found}


def _with_users(server: Server, sasl_port: int, allow_everyone: bool) -> Server:
    """Let a Kafka that is not started have a listener with users, and access rules."""
    configuration = server.log_dir.parent / "server.properties"
    lines = configuration.read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines if "=" in line)
    address = f",CLIENTS://127.0.0.1:{sasl_port}"
    users = " ".join(f'user_{name}="{name}"' for name in USERS)
    properties["listeners"] += address
    properties["advertised.listeners"] += address
    properties |= {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "allow.everyone.if.no.acl.found": str(allow_everyone).lower(),
    }
    configuration.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return server


class Kafka(NamedTuple):
    """An Apache Kafka with users, and the port where they are clients."""

    server: Server
    sasl_port: int
    allow_everyone: bool


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The parameter is `allow.everyone.if.no.acl.found`."""
    allow_everyone: bool = request.param
    sasl_port = free_port()
    server = _with_users(apache.prepare(tmp_path_factory.mktemp("kafka")), sasl_port, allow_everyone).start()
    yield Kafka(server, sasl_port, allow_everyone)
    server.stop()


closed = pytest.mark.parametrize("kafka", [False], indirect=True, ids=["closed"])
closed_or_open = pytest.mark.parametrize("kafka", [False, True], indirect=True, ids=["closed", "open"])


@pytest.fixture
async def sides(kafka: Kafka) -> AsyncIterator[Sides]:
    server, sasl_port, allow_everyone = kafka
    broker = Broker(FEW_LOGS)
    secure(broker, allow_everyone=allow_everyone)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(broker)
        wires = {}
        for name in USERS:
            there = await stack.enter_async_context(Wire("127.0.0.1", sasl_port, name))
            here = await stack.enter_async_context(Wire("127.0.0.1", broker.port, name))
            await _authenticate(there, name)
            wires[name] = (there, here)
        for wire in wires["admin"]:
            existing = {topic.name for topic in (await wire.ask(MetadataRequest(None), 9)).topics}
            for topic in {*TOPICS, "t"} - {"missing"} - existing:
                await create(wire, topic)
            await _coordinate(wire)
        log_dirs = str(server.log_dir), str(Path(broker.log_dir.path))
        yield Sides(wires, (Seen(log_dirs[0]), Seen(log_dirs[1])))


async def _authenticate(wire: Wire, name: str) -> None:
    assert (await wire.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == ErrorCode.NONE
    token = f"\0{name}\0{name}".encode()
    assert (await wire.ask(SaslAuthenticateRequest(token), 2)).error_code == ErrorCode.NONE


async def _coordinate(wire: Wire) -> None:
    """Kafka has to be asked again until the coordinators serve."""
    while True:
        try:
            await coordinate(wire)
        except AssertionError:
            continue
        return


@closed
async def test_rules_are_administered_alike(sides: Sides) -> None:
    await sides.clear()
    await sides.play("admin", *ADMINISTRATION)


@closed_or_open
@pytest.mark.parametrize("seed", range(cases(40)))
async def test_random_rules_decide_alike(sides: Sides, seed: int) -> None:
    await sides.clear()
    await sides.play("admin", creating(*random_rules(seed)), EVERY_RULE)
    for principal in ("alice", "bob"):
        await sides.play(principal, *DECISIONS)


ANSWERED_BY_KAFKA = [case for case in CASES if type(case.request) is not DescribeUserScramCredentialsRequest]
"""A Kafka never answers the description of all users to a client without the right."""


def name_of(case: Case) -> str:
    return f"{type(case.request).__name__}-{case.version}-" + "+".join(right[0].name for right in case.rights)


@closed
@pytest.mark.parametrize("case", ANSWERED_BY_KAFKA, ids=name_of)
async def test_requests_without_a_right_are_refused_alike(sides: Sides, case: Case) -> None:
    refused = Step(case.request, case.version)
    for missing in case.rights:
        rights = [right for right in case.rights if right is not missing]
        rules = [rule(name, kind=kind, operation=operation) for operation, kind, name in rights]
        await sides.clear()
        await sides.play("admin", creating(*rules), EVERY_RULE)
        await sides.play("alice", refused)


_PATTERN = "--resource-pattern-type"
_TOOL = (
    ("--add", "--allow-principal", "User:alice", "--producer", "--topic", "t", "--transactional-id", "x"),
    ("--add", "--allow-principal", "User:alice", "--consumer", "--topic", "t", "--group", "g"),
    ("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "All", "--topic", "*"),
    (
        "--add",
        "--allow-principal",
        "User:*",
        "--operation",
        "Read",
        "--topic",
        "a",
        "--resource-pattern-type",
        "prefixed",
    ),
    ("--list", "--topic", "abc", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:alice"),
    ("--remove", "--force", "--allow-principal", "User:alice", "--operation", "Write", "--topic", "t"),
    ("--remove", "--force", "--topic", "*"),
    ("--list",),
)


@closed
async def test_the_tool_of_kafka_prints_the_same(kafka: Kafka, sides: Sides, tmp_path: Path) -> None:
    """Here it is the super user by its client id; on Kafka nobody has to be."""
    config = tmp_path / "admin.properties"
    config.write_text("client.id=admin\n")
    await sides.clear()

    async def run(port: int, arguments: Sequence[str]) -> list[str]:
        server = "--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(config)
        done = await asyncio.to_thread(java.run, java.ACL_COMMAND, *server, *arguments)
        return sorted(line.strip() for line in done.stdout.splitlines())  # a Java set: in any order

    for arguments in _TOOL:
        there, here = await asyncio.gather(
            run(kafka.server.port, arguments), run(sides.wires["admin"][1].port, arguments)
        )
        assert here == there, arguments
        await sides.play("admin", EVERY_RULE)
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in "".join(here)
