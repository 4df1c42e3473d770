"""The audit log: what it has, what it leaves out, and how it stays small."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.apis.table import ROWS
from odradek.broker.broker import Broker
from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.broker.request.audit import LOGGER, Audit
from odradek.broker.request.audited_changes import CHANGES
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.security.principal import Principal
from odradek.broker.structured_logging import LogEvent, write_to_file
from odradek.broker.testing.clock import ManualClock
from odradek.broker.testing.movable_clock import MovableClock
from odradek.protocol.api import NAMES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.wire import Wire

PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="hunter2";',
    "connection.failed.authentication.delay.ms": "0",
}

Taken = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def taken(caplog: pytest.LogCaptureFixture) -> Taken:
    """The events so far."""
    caplog.set_level(logging.DEBUG, LOGGER)

    def taken() -> list[dict[str, Any]]:
        return [
            {"event": record.msg.name, **record.msg.fields}
            for record in caplog.records
            if record.name == LOGGER and isinstance(record.msg, LogEvent)
        ]

    return taken


async def authenticate(wire: Wire, password: bytes = b"hunter2") -> None:
    await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
    await wire.ask(SaslAuthenticateRequest(b"\0alice\0" + password), 2)


async def test_an_authentication_says_who_and_where(taken: Taken) -> None:
    async with Broker(PROPERTIES) as broker, Wire("127.0.0.1", broker.port) as wire:
        await authenticate(wire)
        [event] = taken()
    assert event["event"] == "authenticated"
    assert (event["principal"], event["mechanism"], event["listener"]) == ("User:alice", "PLAIN", "SASL_PLAINTEXT")
    assert event["peer"][0] == "127.0.0.1"


async def test_failures_that_repeat_are_counted(taken: Taken) -> None:
    clock = MovableClock()
    async with Broker(PROPERTIES, clock=clock) as broker:
        audit = broker.services.audit
        for _ in range(5):
            async with Wire("127.0.0.1", broker.port) as wire:
                await authenticate(wire, b"wrong")
        assert [event["event"] for event in taken()] == ["authentication failed"]
        await clock.advance(seconds=50)
        audit.tick()
        assert len(taken()) == 1
        await clock.advance(seconds=20)
        audit.tick()
    [first, repeated] = taken()
    assert (first["user"], first["reason"]) == ("alice", "wrong password of user 'alice'")
    assert (repeated["user"], repeated["reason"]) == (first["user"], first["reason"])
    assert (repeated["event"], repeated["repeated"], repeated["count"]) == ("repeated", "authentication failed", 4)


async def test_a_broker_that_stops_writes_what_it_has_counted(taken: Taken) -> None:
    async with Broker(PROPERTIES) as broker:
        for _ in range(3):
            async with Wire("127.0.0.1", broker.port) as wire:
                await authenticate(wire, b"wrong")
        refuse(broker.services.audit, request_of("mallory"), range(150))

    counted = [(event["event"], event["count"]) for event in taken() if "count" in event]
    assert counted == [("repeated", 2), ("dropped", 50)]


async def test_failures_of_several_users_are_counted_for_each(taken: Taken) -> None:
    clock = MovableClock()
    async with Broker(PROPERTIES, clock=clock) as broker:
        for user in (b"alice", b"bob", b"alice", b"alice", b"bob"):
            async with Wire("127.0.0.1", broker.port) as wire:
                await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
                await wire.ask(SaslAuthenticateRequest(b"\0" + user + b"\0wrong"), 2)
        await clock.advance(seconds=60)
        broker.services.audit.tick()
    assert [(event["event"], event["user"], event.get("count")) for event in taken()] == [
        ("authentication failed", "alice", None),
        ("authentication failed", "bob", None),
        ("repeated", "alice", 2),
        ("repeated", "bob", 1),
    ]


async def test_the_name_of_a_failed_user_cannot_break_a_line_or_fill_a_disk(taken: Taken) -> None:
    async with Broker(PROPERTIES) as broker, Wire("127.0.0.1", broker.port) as wire:
        await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
        await wire.ask(SaslAuthenticateRequest(b"\0eve\n\x1b[2J user=alice" + b"e" * 10_000 + b"\0wrong"), 2)
    [failed] = taken()
    line = str(LogEvent("authentication failed", failed))
    assert r'user="eve\n\u001b[2J user=alicee' in line
    assert line.isprintable()
    assert len(line) < 700


async def test_a_client_that_names_no_user_fails_without_one(taken: Taken) -> None:
    async with Broker(PROPERTIES) as broker, Wire("127.0.0.1", broker.port) as wire:
        await wire.ask(SaslHandshakeRequest("UNKNOWN"), 1)
    [failed] = taken()
    assert "user" not in failed
    assert failed["reason"] == "the mechanism 'UNKNOWN' is not enabled"


async def test_changes_have_the_names_of_what_is_changed(taken: Taken) -> None:
    async with Broker(PROPERTIES) as broker, Wire("127.0.0.1", broker.port, "tool") as wire:
        await authenticate(wire)
        topics = [CreatableTopic("orders", 1, 1), CreatableTopic("wrong name", 1, 1)]
        await wire.ask(CreateTopicsRequest(topics, validate_only=True), 7)
        await wire.ask(CreateTopicsRequest(topics), 7)
        change = AlterConfigsResource(2, "orders", [AlterableConfig("retention.ms", 0, "123456789")])
        await wire.ask(IncrementalAlterConfigsRequest([change]), 1)
        await wire.ask(DeleteTopicsRequest([DeleteTopicState("orders")]), 6)
        [created, altered, deleted] = taken()[1:]
    assert created["resources"] == "topic orders, topic wrong name"
    assert (created["api"], created["errors"]) == ("CreateTopics", "INVALID_TOPIC_EXCEPTION")
    assert (created["principal"], created["client_id"]) == ("User:alice", "tool")
    assert altered["resources"] == "topic orders: retention.ms"
    assert "errors" not in altered
    assert deleted["resources"] == "topic orders"
    assert "123456789" not in str(taken())


async def test_a_broker_without_security_records_no_changes(taken: Taken) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await wire.ask(CreateTopicsRequest([CreatableTopic("orders", 1, 1)]), 7)
    assert taken() == []


async def test_no_event_has_a_password(taken: Taken, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Broker({**PROPERTIES, "log.level": "debug"}) as broker:
        for password in (b"hunter2", b"hunter3"):
            async with Wire("127.0.0.1", broker.port) as wire:
                await authenticate(wire, password)
    assert taken()
    assert "hunter" not in caplog.text


def request_of(name: str, host: str = "127.0.0.1") -> RequestContext:
    connection = ConnectionContext("L", ("127.0.0.1", 1), (host, 2))
    connection.principal = Principal("User", name)
    return RequestContext(0, 0, 0, "c" * 1000, 0.0, connection)


def refuse(audit: Audit, context: RequestContext, topics: range) -> None:
    for number in topics:
        audit.refused(context, "Produce", "WRITE", f"topic {number}", "no rule allows it")


def test_lines_of_one_client_are_limited_and_the_others_counted(taken: Taken) -> None:
    clock = ManualClock()
    audit = Audit(clock)
    refuse(audit, request_of("mallory"), range(12_345))
    refuse(audit, request_of("alice"), range(1))
    audit.changed(request_of("mallory"), "CreateTopics", "topic orders", [])
    assert [event["event"] for event in taken()] == ["refused"] * 101 + ["changed"]
    assert taken()[100]["principal"] == "User:alice"
    assert all(len(event["client_id"]) < 300 for event in taken())
    clock.advance(9_999)
    audit.tick()
    assert len(taken()) == 102

    clock.advance(1)
    audit.tick()

    dropped = {"event": "dropped", "dropped": "refused", "count": 12_245, "client": "User:mallory", "seconds": 10}
    assert taken()[102:] == [dropped]
    refuse(audit, request_of("mallory"), range(20_000, 20_200))
    assert len(taken()) == 203


def test_lines_of_all_clients_are_limited_and_few_are_named(taken: Taken) -> None:
    clock = ManualClock()
    audit = Audit(clock)
    for number in range(3_000):
        refuse(audit, request_of(f"user-{number}"), range(2))
    assert len(taken()) == 1_000
    clock.advance(10_000)
    audit.tick()
    dropped = {event["client"]: event["count"] for event in taken()[1_000:]}
    assert dropped == {**{f"User:user-{number}": 2 for number in range(500, 520)}, "others": 5_000 - 40}


def test_clients_that_are_anonymous_are_limited_by_their_addresses(taken: Taken) -> None:
    clock = ManualClock()
    audit = Audit(clock)
    for host in ("10.0.0.1", "10.0.0.2"):
        connection = ConnectionContext("L", ("127.0.0.1", 1), (host, 2))
        for number in range(150):
            audit.authentication_failed(connection, "PLAIN", f"{number}", "unknown user")
    clock.advance(10_000)
    audit.tick()
    assert len(taken()) == 202
    assert [(event["client"], event["count"]) for event in taken()[200:]] == [("10.0.0.1", 50), ("10.0.0.2", 50)]


def test_repetitions_count_as_lines(taken: Taken) -> None:
    clock = ManualClock()
    audit = Audit(clock)
    for _ in range(6):
        clock.advance(10_000)
        for first in range(0, 1_000, 100):
            refuse(audit, request_of(f"user-{first}"), range(first, first + 100))
            refuse(audit, request_of(f"user-{first}"), range(first, first + 100))
    assert len(taken()) == 1_000
    clock.advance(50_000)
    audit.tick()
    clock.advance(10_000)
    audit.tick()
    repeated = [event for event in taken() if event["event"] == "repeated"]
    assert len(repeated) == 1_000
    assert {event["count"] for event in repeated} == {11}


@pytest.fixture
def restored() -> Iterator[None]:
    logger = logging.getLogger(LOGGER)
    before = logger.level, logger.propagate
    yield
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(before[0])
    logger.propagate = before[1]


@pytest.mark.usefixtures("restored")
def test_a_file_of_its_own_is_private_and_survives_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    write_to_file(LOGGER, str(path))
    audit = Audit(ManualClock())
    connection = ConnectionContext("L", ("127.0.0.1", 1), ("127.0.0.1", 2))
    audit.authenticated(connection, "PLAIN")
    path.rename(tmp_path / "audit.log.1")
    audit.authentication_failed(connection, "PLAIN", "", "a reason")
    files = [path, tmp_path / "audit.log.1"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    [failed], [authenticated] = ([json.loads(line) for line in file.read_text().splitlines()] for file in files)
    assert (failed["event"], failed["peer"]) == ("authentication failed", "127.0.0.1:2")
    assert authenticated["event"] == "authenticated"


def test_every_change_is_of_an_api_that_changes_something() -> None:
    changing = {NAMES[key] for key, row in ROWS.items() if not row.only_reads}
    assert CHANGES.keys() <= set(NAMES.values())
    administrative = {name for name in changing if name.startswith(("Create", "Delete", "Alter", "Incremental"))}
    not_built = {"CreateDelegationToken", "AlterReplicaLogDirs"}
    assert administrative - not_built <= CHANGES.keys()


async def test_a_refusal_says_which_right_is_missing_and_what_decided(taken: Taken) -> None:
    properties = {
        **PROPERTIES,
        "sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="hunter2" user_admin="a";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    async with Broker(properties) as broker:
        async with Wire("127.0.0.1", broker.port) as wire:
            await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
            await wire.ask(SaslAuthenticateRequest(b"\0admin\0a"), 2)
            denied = AclCreation(2, "secret", 3, "User:alice", "*", 2, 2)
            assert (await wire.ask(CreateAclsRequest([denied]), 3)).results[0].error_code == 0
        async with Wire("127.0.0.1", broker.port) as wire:
            await authenticate(wire)
            topics = [CreatableTopic("orders", 1, 1), CreatableTopic("secret", 1, 1)]
            codes = [row.error_code for row in (await wire.ask(CreateTopicsRequest(topics), 7)).topics]
        allowed = broker.services.metrics.authorizations[True]
    assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
    assert allowed > 0
    created = next(event for event in taken() if event["event"] == "changed")
    assert created["resources"] == "rule DENY User:alice from * ALL on LITERAL TOPIC secret"
    refused = {event["resource"]: event for event in taken() if event["event"] == "refused"}
    assert refused.keys() == {"TOPIC orders", "TOPIC secret"}
    assert {event["operation"] for event in refused.values()} == {"CREATE"}
    assert "no rule" in refused["TOPIC orders"]["rule"]
    assert "must not" in refused["TOPIC secret"]["rule"]
