"""The states of an authentication, step by step, beside those of Apache Kafka."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.config.jaas import PLAIN_MODULE
from tests.peers import apache, odradek
from tests.peers.sasl_orders import STEPS, expected, orders, seen
from tests.peers.sasl_scripts import SCRIPTS, play
from tests.peers.server import free_port

USERS = f'{PLAIN_MODULE} required user_alice="secret";'

# Differs from Kafka, which replaces the bytes, and may so let a user in whose name contains a replacement.
DIFFERENT = {"a token that is not UTF-8"}

ORDERS = {", ".join(names): names for names in orders(4)}

Answers = dict[str, list[Any]]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return answers("odradek", tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return answers("apache", tmp_path_factory.mktemp("theirs"))


def answers(kind: str, directory: Path) -> Answers:
    port, secured, controller = free_port(), free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SECURED://127.0.0.1:{secured}"
    properties = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.secured.sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.secured.plain.sasl.jaas.config": USERS,
    }
    if kind == "apache":
        properties["listeners"] += f",CONTROLLER://127.0.0.1:{controller}"
        properties["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
        server = apache.prepare(directory / "server", properties, port=port)
    else:
        server = odradek.prepare(directory / "server", properties, port=port)
    played = SCRIPTS | {name: [STEPS[each] for each in names] for name, names in ORDERS.items()}
    server.start()
    try:
        return {name: asyncio.run(play("127.0.0.1", secured, steps)) for name, steps in played.items()}
    finally:
        server.stop()
        assert "Traceback" not in server.printed()
        assert "secret" not in server.printed()


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_step_is_answered_as_by_kafka(ours: Answers, theirs: Answers, name: str) -> None:
    if name in DIFFERENT:
        assert [each if isinstance(each, str) else each["error_code"] for each in ours[name]] == [0, 58, "closed"]
    else:
        assert ours[name] == theirs[name]


def test_requests_in_any_order_are_answered_as_the_table_says(ours: Answers, theirs: Answers) -> None:
    """Its table of states is that of Kafka; `tests/security/raw/test_orders.py` goes on with it."""
    answers = {name: expected(names) for name, names in ORDERS.items()}
    assert {name: seen(theirs[name]) for name in ORDERS} == answers
    assert {name: seen(ours[name]) for name in ORDERS} == answers
