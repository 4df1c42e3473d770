"""Listeners with TLS and SASL, and access rules: the same brokers with the same properties on both sides.

| listener | |
|---|---|
| PLAINTEXT | prepares, and tells how long a right response is |
| ECDSA, RSA | TLS, with a key on P-256 or of 2048 bits |
| SCRAM, SCRAM_TLS | SCRAM-SHA-256, without and with TLS |

TLS is of the versions and suites that both sides choose by default; on the client's side of a load is OpenSSL, which
encrypts and decrypts on the same cores. The rules are measured on brokers of their own, in turns with those that have
no authorizer, so that each side also shows what the rules cost it.
"""

from __future__ import annotations

import base64
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from benchmarks.side_by_side import load
from benchmarks.side_by_side.contest import KAFKA_OPTIONS, PROPERTIES, Contest, Side, run_from, with_cpu
from benchmarks.side_by_side.growth import at, beside, small_load
from benchmarks.side_by_side.raw import FETCHES, PRODUCES, filled, loaded, walk_frames
from benchmarks.side_by_side.results import BASELINE, ODRADEK, Row, Sample
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.sasl import scram
from tests.peers import apache, odradek
from tests.peers.certificates import Authority
from tests.peers.server import free_port

LISTENERS = {"ECDSA": "SSL", "RSA": "SSL", "SCRAM": "SASL_PLAINTEXT", "SCRAM_TLS": "SASL_SSL"}
RULES = 10_000
_RULES_A_REQUEST = 500
_USER, _PASSWORD = "alice", "alice secret"
_HANDSHAKING = 2
"""Processes that open connections at once."""
_CALLS = 500
"""Connections of a round of `connect and SCRAM`."""
_LIGHT_RATE = 200


class SecuredSide(Side):
    """A broker with these listeners; `ports` by their names."""

    ports: dict[str, int]


class SecuredContest(Contest):
    """Two brokers with all listeners, and with `more` properties on both sides."""

    def __init__(self, directory: Path, like: Contest, more: Mapping[str, str] = {}) -> None:
        self._more = more
        super().__init__(directory, tree=like.tree, rounds=like.rounds, seconds=like.seconds)

    def _prepared(self, directory: Path) -> tuple[Side, Side]:
        authority = Authority()
        for kind in ("ecdsa", "rsa"):
            authority.server(kind).write(directory, kind)
        if self.tree is None:
            baseline = self._side(BASELINE, directory, of_kafka=True)
        else:
            baseline = self._side(BASELINE, directory)
            run_from(self.tree, baseline.server)
        return baseline, self._side(ODRADEK, directory)

    def _side(self, name: str, directory: Path, *, of_kafka: bool = False) -> SecuredSide:
        ports = {listener: free_port() for listener in ("PLAINTEXT", *LISTENERS)}
        properties = PROPERTIES | _properties(ports, directory) | dict(self._more)
        if of_kafka:
            controller = free_port()
            properties |= {
                "advertised.listeners": properties["listeners"],
                "listeners": f"{properties['listeners']},CONTROLLER://127.0.0.1:{controller}",
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            }
            server = apache.prepare(directory / name, properties, port=ports["PLAINTEXT"], options=KAFKA_OPTIONS)
        else:
            server = odradek.prepare(directory / name, properties, port=ports["PLAINTEXT"])
        side = SecuredSide(name, server)
        side.ports = ports
        return side

    def port(self, side: Side, listener: str) -> int:
        """Return the port of a listener; `side` may be one of another contest."""
        [found] = [each for each in self.sides if each.name == side.name]
        assert isinstance(found, SecuredSide)
        return found.ports[listener]

    def warm_up(self) -> None:
        if self._is_warm:
            return
        super().warm_up()
        topic = self.new_topic(8)
        frames = [load.produce_frame(topic, [index], load.batch(1, 100)) for index in range(8)]
        for side in self.sides:
            for in_flight in (1, 8):
                load.run(
                    side.port, frames, connections=8, in_flight=in_flight,
                    seconds=self.seconds * 2, tls_port=self.port(side, "ECDSA"),
                )  # fmt: skip
        self.delete_topic(topic)


def _properties(ports: Mapping[str, int], directory: Path) -> dict[str, str]:
    protocols = {"PLAINTEXT": "PLAINTEXT", **LISTENERS, "CONTROLLER": "PLAINTEXT"}
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "ssl.keystore.type": "PEM",
        "listener.name.ecdsa.ssl.keystore.location": str(directory / "ecdsa.pem"),
        "listener.name.rsa.ssl.keystore.location": str(directory / "rsa.pem"),
        "listener.name.scram_tls.ssl.keystore.location": str(directory / "ecdsa.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": jaas,
        "listener.name.scram_tls.scram-sha-256.sasl.jaas.config": jaas,
    }


@contextmanager
def _secured(contest: Contest, more: Mapping[str, str] = {}) -> Iterator[SecuredContest]:
    """Run secured brokers, beside which those of `contest` are idle."""
    with TemporaryDirectory(prefix="secured-") as directory, SecuredContest(Path(directory), contest, more) as secured:
        yield secured


class Wanted(NamedTuple):
    """A load of the group `raw` that is also measured with TLS, with its goals here."""

    work: str
    connections: int
    goals: dict[str, float]


_FETCHES = (
    Wanted("fetch 1 MiB", 1, {"mb_per_s": 0.9, "cpu_s_per_gb": 1.1}),
    Wanted("fetch 1 MiB", 8, {"mb_per_s": 0.8, "cpu_s_per_gb": 1.1}),
)
_PRODUCES = (
    Wanted("produce 100 B, 8×8", 8, {"rate": 1.2}),
    Wanted("produce 16 KiB batches, 4×4", 4, {"mb_per_s": 1.0}),
    Wanted("produce 256 KiB batches, 4×1", 4, {"mb_per_s": 0.8}),
)


def _tls(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Measure the bytes of TLS: large fetches, and produces of each size."""
    with _secured(contest) as secured:
        for produce in _PRODUCES:
            yield _produce(secured, produce)
        with filled(secured, 1) as topic:
            for fetch in _FETCHES[: 1 if quick else None]:
                yield _fetch(secured, fetch, topic)


def _produce(secured: SecuredContest, wanted: Wanted) -> Row:
    [case] = [each for each in PRODUCES if each.work == wanted.work]
    batch = load.batch(case.records, case.value_bytes)

    def measure(side: Side) -> Sample:
        port = secured.port(side, "ECDSA")
        with secured.topic_of_a_round(side, case.connections) as topic:
            frames = [load.produce_frame(topic, [index], batch) for index in range(case.connections)]
            return loaded(secured, side, frames, case.connections, case.in_flight, len(batch), tls_port=port)

    return secured.row("security", f"TLS {case.work}", measure, goals=wanted.goals)


def _fetch(secured: SecuredContest, wanted: Wanted, topic: str) -> Row:
    [case] = [each for each in FETCHES if each.work == wanted.work]
    frames = walk_frames(case, topic)

    def measure(side: Side) -> Sample:
        port = secured.port(side, "ECDSA")
        size = case.partitions * case.partition_bytes
        return loaded(secured, side, frames, wanted.connections, 1, size, walk=True, tls_port=port)

    return secured.row("security", f"TLS {case.work}, {wanted.connections}×1", measure, goals=wanted.goals)


def _connections(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Measure what a new connection costs: full handshakes, with a light producer beside them, and SCRAM."""
    with _secured(contest) as secured:
        for listener, rate in {"ECDSA": 1.0, "RSA": 0.8}.items():
            yield _handshakes(secured, listener, rate)
        yield _light_beside_handshakes(secured)
        for side in secured.sides:
            _create_user(side)
        for listener in ("SCRAM", "SCRAM_TLS"):
            yield _connect_and_authenticate(secured, listener, _CALLS // (4 if quick else 1))


def _handshakes(secured: SecuredContest, listener: str, rate: float) -> Row:
    def measure(side: Side) -> Sample:
        port = secured.port(side, listener)
        sample = with_cpu(side, partial(load.handshakes, port, _HANDSHAKING, secured.seconds))
        del sample["cpu_s"]
        return sample

    return secured.row("security", f"full TLS handshakes, {listener}", measure, goals={"rate": rate})


def _light_beside_handshakes(secured: SecuredContest) -> Row:
    """Measure a producer of 200 small requests a second on one TLS connection while others shake hands."""
    topic = secured.new_topic(1)
    frames = [load.produce_frame(topic, [0], load.batch(1, 100))]

    def measure(side: Side) -> Sample:
        port, seconds = secured.port(side, "ECDSA"), secured.seconds
        with load.start(
            side.port, frames, connections=1, in_flight=8, seconds=seconds, rate=_LIGHT_RATE, tls_port=port
        ) as light:
            load.handshakes(port, _HANDSHAKING, seconds)
            sample = load.latencies(light.result(60))
        return {name: sample[name] for name in ("p50_us", "p99_us")}

    work = f"{_LIGHT_RATE} small TLS produces a second beside handshakes"
    row = secured.row("security", work, measure, goals={"p99_us": 0.5})
    secured.delete_topic(topic)
    return row


def _create_user(side: Side) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, scram.MINIMUM_ITERATIONS)
    change = UserScramCredentialUpsertion(_USER, credential, _PASSWORD.encode())
    admin = side.admin()
    admin.alter_user_scram_credentials([change])[_USER].result(60)


def _connect_and_authenticate(secured: SecuredContest, listener: str, calls: int) -> Row:
    salted: dict[str, bytes] = {}
    tls = None
    if LISTENERS[listener] == "SASL_SSL":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE

    def measure(side: Side) -> Sample:
        port = secured.port(side, listener)
        took = [_authenticated(port, tls, side.name, salted) for _ in range(calls)]
        cuts = quantiles(took, n=100)
        return {"p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6}

    work = f"connect{', TLS' if tls else ''} and SCRAM-SHA-256"
    return secured.row("security", work, measure, goals={"p50_us": 0.6})


_HELLO = load.frame(ApiVersionsRequest("benchmark", "1"), load.API_VERSIONS_VERSION)
_HANDSHAKE = load.frame(SaslHandshakeRequest("SCRAM-SHA-256"), 1)


def _authenticated(port: int, tls: ssl.SSLContext | None, name: str, salted: dict[str, bytes]) -> float:
    """Return the seconds from connecting to the server's last message. The salted password is computed once a side."""
    nonce = base64.b64encode(os.urandom(18)).decode()
    first = f"n={_USER},r={nonce}"
    opening = load.frame(SaslAuthenticateRequest(f"n,,{first}".encode()), 2)
    began = time.perf_counter()
    with load.Asker(port, tls) as asker:
        asker.ask(_HELLO)
        asker.ask(_HANDSHAKE)
        _, answer = asker.ask(opening)
        challenge = bytes(answer.auth_bytes).decode()
        joined, salt, iterations = (part[2:] for part in challenge.split(","))
        if name not in salted:
            salted[name] = scram.salted_password(
                scram.SCRAM_SHA_256, _PASSWORD, base64.b64decode(salt), int(iterations)
            )
        last = f"c=biws,r={joined}"
        proof = scram.client_proof(scram.SCRAM_SHA_256, salted[name], f"{first},{challenge},{last}".encode())
        closing = f"{last},p={base64.b64encode(proof).decode()}"
        _, answer = asker.ask(load.frame(SaslAuthenticateRequest(closing.encode()), 2))
        took = time.perf_counter() - began
    if answer.error_code:
        raise RuntimeError(f"{name} refuses the user: {answer.error_message}")
    return took


_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def _rules(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce where 10,000 rules apply, in turns with brokers that have no authorizer."""
    with _secured(contest, _AUTHORIZER) as secured:
        contest.warm_up()
        there, here = contest.new_topic(8), secured.new_topic(8)
        for side in secured.sides:
            _create_rules(side, here, RULES // (10 if quick else 1))
        works = [
            partial(small_load, each, [load.produce_frame(topic, [index], load.batch(1, 100)) for index in range(8)])
            for each, topic in ((contest, there), (secured, here))
        ]
        measure = beside(at(contest, works[0]), at(secured, works[1]))
        yield secured.row("security", f"produce 100 B, 8×1, with {RULES:,} rules", measure, goals={"rate": 1.2})
        contest.delete_topic(there)


def _create_rules(side: Side, topic: str, count: int) -> None:
    """Allow anonymous clients to write the topic, and store rules of other users, some of them for the same topic."""
    rules = [_rule(topic, "User:ANONYMOUS")]
    rules += [_rule(f"other-{number}" if number % 10 else topic, f"User:{number}") for number in range(1, count)]
    admin = side.admin()
    for begin in range(0, len(rules), _RULES_A_REQUEST):
        for each in admin.create_acls(rules[begin : begin + _RULES_A_REQUEST]).values():
            each.result(60)


def _rule(topic: str, principal: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )


PARTS = {"tls": _tls, "connections": _connections, "rules": _rules}
