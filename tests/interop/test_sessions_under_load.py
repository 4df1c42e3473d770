"""Sessions that end while clients work (`connections.max.reauth.ms`, KIP-368): they authenticate again, lose nothing.

Each client has a listener of its own, whose series are then its own. All of them work at the same time, until each has
authenticated again several times. Java's client does so when 85 to 95 % of a session are over, so with at least 0.4 s
left here. A machine that stalls for longer costs a client its connection, which it notices, and it sends again what was
not answered. So a few closed connections are allowed, but no record lost or doubled.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from odradek.broker.config.security_rules import UNSECURED_VALIDATOR
from tests.peers import odradek, series
from tests.peers.certificates import Authority
from tests.peers.java_machine import JavaMachine
from tests.peers.server import Server, free_port
from tests.peers.steady_load import Access, Aiokafka, Bundled, Client, Confluent, Java, SteadyLoad

pytestmark = pytest.mark.java

SESSION_MS = 8000
REPETITIONS = 4
"""Of each client, in two connections; and the connections that the broker closes of a client that does not."""
LONGEST_SECONDS = 45.0
PASSWORD = "alice secret"
_PREFIX = "kafka_server_socket_server_metrics_"
CASES = {
    "JAVA.SCRAM-SHA-256": "SCRAM-SHA-256",
    "JAVA.OAUTHBEARER": "OAUTHBEARER",
    "LIBRDKAFKA.SCRAM-SHA-256": "SCRAM-SHA-256",
    "LIBRDKAFKA.OAUTHBEARER": "OAUTHBEARER",
    "BUNDLED.SCRAM-SHA-256": "SCRAM-SHA-256",
    "BUNDLED.OAUTHBEARER": "OAUTHBEARER",
    "AIOKAFKA.SCRAM-SHA-256": "SCRAM-SHA-256",
}
"""The mechanism of each listener, which is named after its client."""


class Outcome(NamedTuple):
    """What a client saw, and what the broker counted of it until it had stopped."""

    load: SteadyLoad
    reauthentications: float
    failures: float
    killed: float


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    directory = tmp_path_factory.mktemp("sessions")
    authority = Authority()
    ca, store = authority.write(directory), authority.server().write(directory)
    ports = {name: free_port() for name in CASES}
    properties = {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:SASL_SSL" for name in CASES),
        "inter.broker.listener.name": next(iter(CASES)),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "connections.max.reauth.ms": str(SESSION_MS),
        **{f"listener.name.{name.lower()}.sasl.enabled.mechanisms": each for name, each in CASES.items()},
        **{
            f"listener.name.{name.lower()}.oauthbearer.sasl.server.callback.handler.class": UNSECURED_VALIDATOR
            for name, each in CASES.items()
            if each == "OAUTHBEARER"
        },
    }
    server = odradek.prepare(directory / "server", properties, port=next(iter(ports.values())))
    command = [sys.executable, "-m", "odradek", "users", "add", "alice"]
    subprocess.run(
        [*command, "--mechanism", "SCRAM-SHA-256", "--config", str(directory / "server" / "server.properties")],
        input=f"{PASSWORD}\n",
        text=True,
        check=True,
        capture_output=True,
    )
    server.start()
    loads: dict[str, SteadyLoad] = {}
    with JavaMachine() as machine:
        clients: dict[str, Client] = {
            "JAVA": Java(machine),
            "LIBRDKAFKA": Confluent(),
            "BUNDLED": Bundled(),
            "AIOKAFKA": Aiokafka(),
        }
        with ExitStack() as stack:
            for name, mechanism in CASES.items():
                access = Access(f"localhost:{ports[name]}", ca, mechanism, password=PASSWORD)
                load = SteadyLoad(clients[name.partition(".")[0]], access, name)
                loads[name] = stack.enter_context(load)
            until = time.monotonic() + LONGEST_SECONDS
            while time.monotonic() < until:
                found = _outcomes(server, loads)
                if all(each.reauthentications + each.killed >= REPETITIONS for each in found.values()):
                    break
                threading.Event().wait(0.5)
    yield _outcomes(server, loads)
    assert server.stop() == 0
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


def _outcomes(server: Server, loads: Mapping[str, SteadyLoad]) -> dict[str, Outcome]:
    read = series.read(server)
    return {
        name: Outcome(
            load,
            series.value(read, f"{_PREFIX}successful_reauthentication_total", listener=name),
            series.value(read, f"{_PREFIX}failed_reauthentication_total", listener=name),
            series.value(read, f"{_PREFIX}expired_connections_killed_count", listener=name),
        )
        for name, load in loads.items()
    }


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("AIOKAFKA")])
def test_a_client_that_authenticates_again_notices_nothing(outcomes: dict[str, Outcome], name: str) -> None:
    load, reauthentications, failures, killed = outcomes[name]
    assert load.errors == [] or killed > 0
    assert load.received == list(range(load.sent))
    assert reauthentications + killed >= REPETITIONS
    assert killed < reauthentications
    assert failures == 0


def test_a_client_that_does_not_is_closed_at_its_next_request_and_loses_nothing(outcomes: dict[str, Outcome]) -> None:
    load, reauthentications, failures, killed = outcomes["AIOKAFKA.SCRAM-SHA-256"]
    assert load.errors == []
    assert load.received == list(range(load.sent))
    assert killed >= REPETITIONS
    assert (reauthentications, failures) == (0, 0)
