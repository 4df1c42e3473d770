"""The same SASL messages to Apache Kafka and to our exchanges: the same answers, but where we differ on purpose."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.randomness import SystemRandomness
from odradek.broker.security.authentication.exchange import AuthenticationFailed, Exchange
from odradek.broker.security.authentication.mechanisms import Mechanisms, OauthBearer, Plain, Scram
from odradek.broker.security.authentication.tokens.key_cache import KeyCache
from odradek.broker.security.authentication.tokens.key_source import FileKeySource
from odradek.broker.security.authentication.tokens.signed_tokens import SignedTokens, SignedTokenSettings
from odradek.broker.security.authentication.tokens.unsecured_tokens import UnsecuredSettings, UnsecuredTokens
from odradek.broker.security.authentication.unknown_users import UnknownUsers
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.sasl.plain import PlainMessage
from odradek.protocol.sasl.scram import SCRAM_SHA_256, ScramCredential, client_proof, salted_password
from odradek.protocol.sasl.scram_client import ScramClient
from odradek.protocol.sasl.scram_messages import ClientFinal, ClientFirst, ServerFirst, auth_message
from tests.peers import apache
from tests.peers.server import Server, free_port
from tests.security.authentication.exchanges import step as take
from tests.security.authentication.tokens.issuer import key_set, part, token, unsecured_token
from tests.wire import Wire

pytestmark = pytest.mark.java

SCRAM = SCRAM_SHA_256.name
SALT = b"1f5z3v2e6l1j8k4w9q7t0y3u5i"
AUDIENCE, ISSUER = "kafka", "https://issuer.example"
HANDLERS = "org.apache.kafka.common.security.oauthbearer"
JAAS = {
    "plain": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";',
    "scram-sha-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "oauthbearer": f'{HANDLERS}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
}

Step = bytes | Callable[[bytes], bytes]
"""A message of the client, or a function that makes it of the server's last one."""
Outcome = list[tuple[str, str]]
"""For each message `accepted` or `failed`, and the server's text where it is always the same."""


class Kafka(NamedTuple):
    """An Apache Kafka with two SASL listeners: `sasl` of all mechanisms, `signed` of OAUTHBEARER with signed tokens."""

    server: Server
    ports: dict[str, int]

    async def outcome(self, listener: str, mechanism: str, steps: Sequence[Step]) -> Outcome:
        found: Outcome = []
        async with Wire("127.0.0.1", self.ports[listener]) as wire:
            shaken = await wire.ask(SaslHandshakeRequest(mechanism), 1)
            assert shaken.error_code == 0
            answer = b""
            for step in steps:
                response = await wire.ask(SaslAuthenticateRequest(step if isinstance(step, bytes) else step(answer)), 2)
                answer = bytes(response.auth_bytes)
                if response.error_code:
                    return [*found, ("failed", response.error_message)]
                found.append(("accepted", text_of(answer)))
        return found


def text_of(answer: bytes) -> str:
    """Return an answer that does not vary: neither nonce nor signature is in it."""
    return "" if answer.startswith((b"r=", b"v=")) else answer.decode()


async def our_outcome(exchange: Exchange, steps: Sequence[Step]) -> Outcome:
    found: Outcome = []
    answer = b""
    for step in steps:
        try:
            answer = await take(exchange, step if isinstance(step, bytes) else step(answer))
        except AuthenticationFailed as failed:
            return [*found, ("failed", failed.message)]
        found.append(("accepted", text_of(answer)))
    return found


@pytest.fixture(scope="module")
def jwks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("issuer") / "keys.json"
    path.write_bytes(key_set())
    return path


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, jwks: Path) -> Iterator[Kafka]:
    ports = {name: free_port() for name in ("plaintext", "sasl", "signed", "controller")}
    addresses = {name.upper(): f"127.0.0.1:{port}" for name, port in ports.items()}
    clients = {name: address for name, address in addresses.items() if name != "CONTROLLER"}
    properties = {
        "listeners": ",".join(f"{name}://{address}" for name, address in addresses.items()),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in clients.items()),
        "controller.quorum.voters": f"1@{addresses['CONTROLLER']}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,SIGNED:SASL_PLAINTEXT"
        ),
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.sasl.sasl.enabled.mechanisms": f"PLAIN,{SCRAM},OAUTHBEARER",
        "listener.name.signed.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.signed.oauthbearer.sasl.jaas.config": JAAS["oauthbearer"],
        "listener.name.signed.oauthbearer.sasl.server.callback.handler.class": (
            f"{HANDLERS}.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "listener.name.signed.sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.signed.sasl.oauthbearer.expected.issuer": ISSUER,
    } | {f"listener.name.sasl.{mechanism}.sasl.jaas.config": text for mechanism, text in JAAS.items()}
    allowed = (
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks.as_uri()}",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={jwks}",
    )
    server = apache.prepare(
        tmp_path_factory.mktemp("apache"), properties, port=ports["plaintext"], options=(*apache.OPTIONS, *allowed)
    ).start()
    asyncio.run(add_alice(ports["plaintext"]))
    yield Kafka(server, ports)
    server.stop()


async def add_alice(port: int) -> None:
    salted = salted_password(SCRAM_SHA_256, "alice-secret", SALT, 4096)
    async with Wire("127.0.0.1", port) as wire:
        upsertion = ScramCredentialUpsertion("alice", 1, 4096, SALT, salted)
        await wire.ask(AlterUserScramCredentialsRequest([], [upsertion]), 0)
        while not (await wire.ask(DescribeUserScramCredentialsRequest(None), 0)).results:
            pass


@pytest.fixture(scope="module")
def ours(jwks: Path) -> dict[str, Callable[[str], Exchange]]:
    """Our mechanisms of the same listeners."""
    credentials = {"alice": ScramCredential.from_password(SCRAM_SHA_256, "alice-secret", SALT)}
    clock = SystemClock()
    keys = KeyCache(FileKeySource(jwks), clock)
    signed = SignedTokens(SignedTokenSettings((AUDIENCE,), ISSUER), keys.find, clock)
    return {
        "sasl": Mechanisms(
            [
                Plain({"alice": "alice-secret"}),
                Scram(SCRAM_SHA_256, credentials.get, lambda: UnknownUsers(bytes(32)), SystemRandomness()),
                OauthBearer(UnsecuredTokens(UnsecuredSettings(), clock)),
            ]
        ).exchange,
        "signed": Mechanisms([OauthBearer(signed)]).exchange,
    }


Compare = Callable[..., Any]


@pytest.fixture
def compare(kafka: Kafka, ours: dict[str, Callable[[str], Exchange]]) -> Compare:
    """Return the outcomes of Apache Kafka and of our exchange."""

    async def outcomes(mechanism: str, *steps: Step, listener: str = "sasl") -> tuple[Outcome, Outcome]:
        theirs = await kafka.outcome(listener, mechanism, steps)
        return theirs, await our_outcome(ours[listener](mechanism), steps)

    return outcomes


@pytest.mark.parametrize(
    "message",
    [
        PlainMessage("alice", "alice-secret").encode(),
        PlainMessage("alice", "alice-secret", "alice").encode(),
        PlainMessage("alice", "alice-secret", "bob").encode(),
        PlainMessage("alice", "wrong").encode(),
        PlainMessage("alice", "wrong", "bob").encode(),
        PlainMessage("bob", "alice-secret").encode(),
        b"\0alice\0",
        b"\0\0alice-secret",
        b"\0\0",
        b"alice",
        b"alice\0alice-secret",
        b"\0alice\0alice-secret\0",
        b"\0alice\0alice-secret\0\0\0",
    ],
)
async def test_plain(compare: Compare, message: bytes) -> None:
    theirs, ours = await compare("PLAIN", message)
    assert ours == theirs


def scram_client(name: str = "alice", password: str = "alice-secret", authorization_id: str = "") -> list[Step]:
    client = ScramClient(SCRAM_SHA_256, name, password, "clientNonce", authorization_id=authorization_id)
    return [client.first(), client.final]


def scram_with(first: ClientFirst, change: Callable[[ClientFinal], ClientFinal] = lambda final: final) -> list[Step]:
    """Return the messages of a client with alice's password, whatever else it says: the proof covers what it sends."""

    def final(answer: bytes) -> bytes:
        server_first = ServerFirst.decode(answer)
        unproved = change(ClientFinal(first.header.encode(), server_first.nonce, b""))
        salted = salted_password(SCRAM_SHA_256, "alice-secret", server_first.salt, server_first.iterations)
        proof = client_proof(SCRAM_SHA_256, salted, auth_message(first, server_first, unproved))
        return ClientFinal(unproved.channel_binding, unproved.nonce, proof, unproved.extensions).encode()

    return [first.encode(), final]


@pytest.mark.parametrize(
    "steps",
    [
        scram_client(),
        scram_client(authorization_id="alice"),
        scram_client(authorization_id="bob"),
        scram_client(password="wrong"),
        scram_with(ClientFirst("alice", "clientNonce")),
        scram_with(ClientFirst("alice", "clientNonce", extensions=(("unknown", "extension"),))),
        scram_with(ClientFirst("alice", "clientNonce"), lambda final: ClientFinal(final.channel_binding, "other", b"")),
        [ClientFirst("alice", "clientNonce").encode()] * 2,
        [b""],
        [b"n,,n=alice"],
        [b"p=tls-unique,,n=alice,r=clientNonce"],
        [b"n,,n=al=ice,r=clientNonce"],
        ["n,,n=löwe,r=clientNonce".encode()],
        [b"n,,n=alice,r=client Nonce"],
        [b"\0alice\0alice-secret"],
        [ClientFirst("alice", "clientNonce").encode(), b""],
        [ClientFirst("alice", "clientNonce").encode(), b"c=biws,r=clientNonce,p=AAAA"],
    ],
    ids=range(17),
)
async def test_scram(compare: Compare, steps: list[Step]) -> None:
    theirs, ours = await compare(SCRAM, *steps)
    assert ours == theirs


async def test_scram_of_an_unknown_user_fails_later_here(compare: Compare) -> None:
    for steps in (
        scram_client("bob"),
        [ClientFirst("bob", "clientNonce", extensions=(("tokenauth", "true"),)).encode()],
    ):
        theirs, ours = await compare(SCRAM, *steps)
        assert ours[0] == ("accepted", "")
        assert ours[1:] in ([], theirs)
        assert theirs[0][0] == "failed"


async def test_scram_with_another_channel_binding_fails_only_here(compare: Compare) -> None:
    steps = scram_with(ClientFirst("alice", "clientNonce"), lambda final: ClientFinal(b"y,,", final.nonce, b""))
    theirs, ours = await compare(SCRAM, *steps)
    assert [kind for kind, _ in theirs] == ["accepted", "accepted"]
    assert [kind for kind, _ in ours] == ["accepted", "failed"]


async def test_scram_with_a_demanded_extension_fails_only_here(compare: Compare) -> None:
    theirs, ours = await compare(SCRAM, b"n,,m=x,n=alice,r=clientNonce")
    assert [theirs[0][0], ours[0][0]] == ["accepted", "failed"]


async def test_scram_with_an_extension_in_the_final_message_fails_only_there(compare: Compare) -> None:
    """Kafka computes the proof without it, which RFC 5802 does not."""
    steps = scram_with(
        ClientFirst("alice", "clientNonce"),
        lambda final: ClientFinal(final.channel_binding, final.nonce, b"", (("x", "y"),)),
    )
    theirs, ours = await compare(SCRAM, *steps)
    assert [theirs[1][0], ours[1][0]] == ["failed", "accepted"]


async def test_scram_of_a_client_that_could_bind_channels_fails_only_there(compare: Compare) -> None:
    theirs, ours = await compare(SCRAM, b"y,,n=alice,r=clientNonce")
    assert [theirs[0][0], ours[0][0]] == ["failed", "accepted"]


def bearer(text: str, authorization_id: str = "", *pairs: str) -> bytes:
    header = f"n,{'a=' + authorization_id if authorization_id else ''},"
    return "\x01".join([header, f"auth=Bearer {text}", *pairs, "", ""]).encode()


def now() -> int:
    return int(time.time())


def current(**changes: Any) -> dict[str, Any]:
    """Return times of now; other claims are the issuer's."""
    return {"iat": now() - 10, "exp": now() + 600} | changes


@pytest.mark.parametrize(
    "make",
    [
        lambda: [bearer(unsecured_token(**current()))],
        lambda: [bearer(unsecured_token(**current(iat=None)))],
        lambda: [bearer(unsecured_token(**current()), "alice")],
        lambda: [bearer(unsecured_token(**current()), "bob")],
        lambda: [bearer(unsecured_token(**current()), "", "traceId=1")],
        lambda: [bearer(unsecured_token(**current(exp=now() - 1))), b"\x01"],
        lambda: [bearer(unsecured_token(**current(exp=None))), b"\x01"],
        lambda: [bearer(unsecured_token(**current(exp="x"))), b"\x01"],
        lambda: [bearer(unsecured_token(**current(iat=now() + 100))), b"\x01"],
        lambda: [bearer(unsecured_token(**current(sub=None))), b"\x01"],
        lambda: [bearer(unsecured_token(**current(sub=7))), b"\x01"],
        lambda: [bearer(unsecured_token(**current(scope=["a", "b"])))],
        lambda: [bearer(token(**current())), b"\x01"],
        lambda: [bearer("abc"), b"\x01"],
        lambda: [bearer("a.b.c"), b"\x01"],
        lambda: [bearer(unsecured_token({"alg": "none", "typ": "JWT"}, **current()))],
        lambda: [bearer(unsecured_token({"alg": "None"}, **current())), b"\x01"],
        lambda: [b"\x01"],
        lambda: [b""],
        lambda: [b"n,,\x01\x01"],
        lambda: [bearer(unsecured_token(**current()), "", "key-1=value")],
    ],
    ids=range(21),
)
async def test_unsecured_tokens(compare: Compare, make: Callable[[], list[Step]]) -> None:
    theirs, ours = await compare("OAUTHBEARER", *make())
    assert ours == theirs


async def test_another_scheme_than_bearer_is_answered_only_here(
    kafka: Kafka, ours: dict[str, Callable[[str], Exchange]]
) -> None:
    message = b"n,,\x01auth=Basic abc\x01\x01"
    with pytest.raises(asyncio.IncompleteReadError):  # Kafka closes the connection
        await kafka.outcome("sasl", "OAUTHBEARER", [message])
    [(kind, _)] = await our_outcome(ours["sasl"]("OAUTHBEARER"), [message])
    assert kind == "failed"


async def test_a_second_token_is_only_tried_there(compare: Compare) -> None:
    steps = [bearer("a.b.c"), bearer(unsecured_token(**current()))]
    theirs, ours = await compare("OAUTHBEARER", *steps)
    assert theirs[0] == ours[0]
    assert [theirs[1][0], ours[1][0]] == ["accepted", "failed"]


def signed(algorithm: str = "ES256", **changes: Any) -> list[Step]:
    return [bearer(token(algorithm, **current(aud=AUDIENCE) | changes)), b"\x01"]


def forged(header: dict[str, Any]) -> list[Step]:
    """Return a token with another header than the one that was signed."""
    return [bearer(f"{part(header)}.{token(**current(aud=AUDIENCE)).partition('.')[2]}"), b"\x01"]


@pytest.mark.parametrize(
    "make",
    [
        *[
            lambda algorithm=each: signed(algorithm)[:1]
            for each in ("RS256", "RS512", "PS384", "ES256", "ES384", "ES512")
        ],
        lambda: signed("EdDSA")[:1],
        lambda: signed(aud=["x", AUDIENCE])[:1],
        lambda: signed(scope=None)[:1],
        lambda: signed(scope=["a", "b"])[:1],
        lambda: signed(exp=now() - 10)[:1],  # the clock skew is 30 s
        lambda: signed(exp=now() - 40, iat=now() - 100),
        lambda: signed(exp=None),
        lambda: signed(iat=None),
        lambda: signed(nbf=now() + 100),
        lambda: signed(nbf=now() + 10)[:1],
        lambda: signed(sub=None),
        lambda: signed(sub=""),
        lambda: signed(sub=7),
        lambda: signed(scope=["a", "a"]),
        lambda: signed(scope=[" "]),
        lambda: signed(aud=None),
        lambda: signed(aud="other"),
        lambda: signed(iss=None),
        lambda: signed(iss="other"),
        lambda: forged({"alg": "ES256", "kid": "unknown"}),
        lambda: forged({"alg": "ES256", "kid": "p384"}),
        lambda: forged({"alg": "none"}),
        lambda: forged({"alg": "HS256", "kid": "p256"}),
        lambda: forged({"alg": "ES256", "kid": "p256", "crit": ["exp"]}),
        lambda: [bearer(unsecured_token(**current(aud=AUDIENCE))), b"\x01"],
        lambda: [bearer("abc"), b"\x01"],
        lambda: [bearer("a.b.c"), b"\x01"],
    ],
    ids=range(33),
)
async def test_signed_tokens(compare: Compare, make: Callable[[], list[Step]]) -> None:
    theirs, ours = await compare("OAUTHBEARER", *make(), listener="signed")
    assert ours == theirs
