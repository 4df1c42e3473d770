"""Every mechanism with and without TLS, right and wrong, with the clients of others."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Producer
from joserfc import jwt
from joserfc.jwk import ECKey
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens
from py4j.protocol import Py4JJavaError

from odradek.broker.config.jaas import MODULES
from tests.peers import odradek
from tests.peers.certificates import Authority
from tests.peers.java_machine import JavaMachine
from tests.peers.server import Server, free_port

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = 'it\'s "quoted", = and long'
TOPIC = "t"


class Access(NamedTuple):
    """How a client connects. `secret` is a password, or a token of OAUTHBEARER."""

    address: str
    mechanism: str
    secret: str
    ca: Path | None

    @property
    def protocol(self) -> str:
        return "SASL_PLAINTEXT" if self.ca is None else "SASL_SSL"


class RefusedError(Exception):
    """The client could not authenticate."""


def _confluent(access: Access) -> None:
    settings = {
        "bootstrap.servers": access.address,
        "security.protocol": access.protocol,
        "sasl.mechanism": access.mechanism,
        "message.timeout.ms": 8000,
        "error_cb": lambda error: errors.append(str(error)),
    }
    errors: list[str] = []
    if access.mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (access.secret, time.time() + 300)
    else:
        settings |= {"sasl.username": "alice", "sasl.password": access.secret}
    if access.ca is not None:
        settings["ssl.ca.location"] = str(access.ca)
    producer = Producer(settings)
    failures: list[object] = []
    producer.produce(TOPIC, b"v", on_delivery=lambda error, _: failures.append(error) if error else None)
    for _ in range(100):
        if not producer.flush(0.1) or any("uthentication" in error for error in errors):
            break
    if failures or len(producer):
        producer.purge()
        raise RefusedError(errors)


class _AiokafkaTokens(AiokafkaTokens):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def _aiokafka(access: Access) -> None:
    async def send() -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": access.address,
            "security_protocol": access.protocol,
            "sasl_mechanism": access.mechanism,
            "request_timeout_ms": 8000,
        }
        if access.mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = _AiokafkaTokens(access.secret)
        else:
            settings |= {"sasl_plain_username": "alice", "sasl_plain_password": access.secret}
        if access.ca is not None:
            settings["ssl_context"] = ssl.create_default_context(cafile=str(access.ca))
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"v")
        finally:
            await producer.stop()

    try:
        asyncio.run(send())
    except AiokafkaError as error:
        raise RefusedError(str(error)) from error


class _KafkaPythonTokens(KafkaPythonTokens):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def _kafka_python(access: Access) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": access.address,
        "security_protocol": access.protocol,
        "sasl_mechanism": access.mechanism,
        "max_block_ms": 4000,
    }
    if access.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = _KafkaPythonTokens(access.secret)
    else:
        settings |= {"sasl_plain_username": "alice", "sasl_plain_password": access.secret}
    if access.ca is not None:
        settings["ssl_cafile"] = str(access.ca)
    try:
        producer = KafkaProducer(**settings)
        try:
            producer.send(TOPIC, b"v").get(8)
        finally:
            producer.close(timeout=0)
    except KafkaPythonError as error:
        raise RefusedError(str(error)) from error


def _java(machine: JavaMachine, access: Access) -> None:
    escaped = access.secret.replace('"', '\\"')
    settings = {
        "bootstrap.servers": access.address,
        "security.protocol": access.protocol,
        "sasl.mechanism": access.mechanism,
        "sasl.jaas.config": f'{MODULES[access.mechanism]} required username="alice" password="{escaped}";',
        "max.block.ms": "8000",
    }
    if access.ca is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(access.ca)}
    make = partial(machine.new, "org.apache.kafka.common.serialization.ByteArraySerializer")
    producer = machine.new("org.apache.kafka.clients.producer.KafkaProducer", settings, make(), make())
    try:
        producer.send(machine.new("org.apache.kafka.clients.producer.ProducerRecord", TOPIC, b"v")).get()
    except Py4JJavaError as error:
        raise RefusedError(str(error.java_exception)) from error
    finally:
        producer.close()


Send = Callable[[Access], None]


@pytest.fixture(scope="module")
def machine() -> Iterator[JavaMachine]:
    with JavaMachine() as started:
        yield started


CLIENTS: Mapping[str, Send] = {"confluent-kafka": _confluent, "aiokafka": _aiokafka, "kafka-python": _kafka_python}
SERVED = [
    (name, mechanism)
    for name in (*CLIENTS, "java")
    for mechanism in MECHANISMS
    if (name, mechanism) != ("java", "OAUTHBEARER")  # it fetches tokens over HTTP; `test_client_security` has others
]
REFUSED = [
    (name, mechanism)
    for name, mechanism in SERVED
    # kafka-python leaves sockets open, and aiokafka does not look at the answer to a token: it waits for ever.
    if name != "kafka-python" and (name, mechanism) != ("aiokafka", "OAUTHBEARER")
]


def _cases(pairs: list[tuple[str, str]]) -> list[Any]:
    return [pytest.param(*pair, marks=[pytest.mark.java] if pair[0] == "java" else []) for pair in pairs]


@pytest.fixture
def send(request: pytest.FixtureRequest, name: str) -> Send:
    return CLIENTS.get(name) or partial(_java, request.getfixturevalue("machine"))


class Secured(NamedTuple):
    server: Server
    ports: Mapping[str, int]
    ca: Path
    key: ECKey

    def access(self, mechanism: str, *, tls: bool, wrong: bool = False) -> Access:
        port = self.ports["SASL_SSL" if tls else "SASL_PLAINTEXT"]
        secret = "wrong" if wrong else PASSWORD
        if mechanism == "OAUTHBEARER":
            now = int(time.time())
            claims = {"sub": "alice", "iat": now, "exp": now + 300, "aud": "somebody else" if wrong else "kafka"}
            secret = jwt.encode({"alg": "ES256", "kid": "one"}, claims, self.key)
        return Access(f"localhost:{port}", mechanism, secret, self.ca if tls else None)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority()
    ca, store = authority.write(directory), authority.server().write(directory)
    key = ECKey.generate_key("P-256", {"kid": "one", "alg": "ES256", "use": "sig"})
    keys = directory / "keys.json"
    keys.write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    ports = {"SASL_PLAINTEXT": free_port(), "SASL_SSL": free_port()}
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    properties = {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        **{
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": (
                f'{MODULES["PLAIN"]} required user_alice="{escaped}";'.replace("\\", "\\\\")
            )
            for name in ports
        },
    }
    server = odradek.prepare(directory / "server", properties, port=ports["SASL_PLAINTEXT"])
    configuration = directory / "server" / "server.properties"
    subprocess.run(
        [sys.executable, "-m", "odradek", "users", "add", "alice", "--config", str(configuration)],
        input=f"{PASSWORD}\n",
        text=True,
        check=True,
        capture_output=True,
    )
    server.start()
    yield Secured(server, ports, ca, key)
    server.stop()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
    assert PASSWORD not in server.printed()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(("name", "mechanism"), _cases(SERVED))
def test_a_client_that_shows_who_it_is_is_served(send: Send, mechanism: str, tls: bool, secured: Secured) -> None:
    send(secured.access(mechanism, tls=tls))


@pytest.mark.parametrize(("name", "mechanism"), _cases(REFUSED))
def test_a_client_that_does_not_is_refused(send: Send, mechanism: str, secured: Secured) -> None:
    with pytest.raises(RefusedError):
        send(secured.access(mechanism, tls=True, wrong=True))
