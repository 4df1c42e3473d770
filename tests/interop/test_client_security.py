"""The bundled client at the secured listeners of both brokers: right and wrong credentials, certificates, sessions."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import Any

import pytest

from odradek.client import (
    Admin,
    AuthenticationFailedError,
    BootstrapError,
    ClientError,
    Consumer,
    NewTopic,
    NotKafkaError,
    Producer,
    TlsError,
)
from odradek.client.network.connections import Purpose
from tests.peers.certificates import Authority
from tests.peers.secured_server import SESSION_MS, USERS, SecuredServer

OTHER = Authority("another CA")
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@pytest.fixture
def kafka(secured: SecuredServer) -> SecuredServer:
    return secured


def user(mechanism: str, name: str = "alice", **more: Any) -> dict[str, Any]:
    """The settings of a user, without the protocol."""
    if mechanism == "OAUTHBEARER":
        jaas = f"{OAUTH_MODULE} required unsecuredLoginStringClaim_sub={name};"
        return {"sasl_mechanism": mechanism, "sasl_jaas_config": jaas} | more
    return {"sasl_mechanism": mechanism, "sasl_username": name, "sasl_password": USERS[name]} | more


async def reach(address: str, **settings: Any) -> str | None:
    """The cluster's id, from any connection with these settings."""
    async with Admin(address, **settings) as admin:
        return (await admin.describe_cluster()).cluster_id


async def refusal(kind: type[ClientError], address: str, words: str, **settings: Any) -> ClientError:
    with pytest.raises(kind, match=re.escape(words)) as raised:
        await reach(address, **settings)
    return raised.value


# TLS.


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_tls(kafka: SecuredServer, version: str) -> None:
    assert await reach(kafka.address("SSL"), **kafka.tls(ssl_enabled_protocols=[version]))


async def test_an_unknown_ca_a_wrong_one_and_a_wrong_host_name(kafka: SecuredServer) -> None:
    address = kafka.address("SSL")
    words = f"connect at {address}: the broker's certificate is not trusted ({kafka.reason_of_unknown_ca}). "
    await refusal(TlsError, address, f"{words}Set ssl_truststore_location", security_protocol="SSL")
    of_other = kafka.tls(ssl_truststore_location=None, ssl_truststore_certificates=OTHER.pem)
    await refusal(TlsError, address, f"{words}Add the CA of the broker's certificate to the trust store", **of_other)
    by_ip = f"127.0.0.1:{kafka.ports['SSL']}"
    words = "the broker's certificate is not for 127.0.0.1, but for localhost. Connect to one of its names"
    await refusal(TlsError, by_ip, words, **kafka.tls())
    assert await reach(by_ip, **kafka.tls(ssl_endpoint_identification_algorithm=""))


async def test_a_certificate_of_the_client(kafka: SecuredServer) -> None:
    address = kafka.address("MTLS")
    store = kafka.authority.client("client").write_pkcs12(kafka.directory / "client.p12", "pa55")
    known = kafka.tls(ssl_keystore_location=str(store), ssl_keystore_password="pa55")
    assert await reach(address, **known)
    foreign = str(OTHER.client("client").write_pem(kafka.directory / "foreign.pem"))
    words = "the broker refused TLS ("
    for version in ("TLSv1.2", "TLSv1.3"):
        # OpenSSL has no alert for a missing certificate in TLS 1.2, but one for several failures.
        is_vague = kafka.server.kind == "odradek" and version == "TLSv1.2"
        missing = TlsError if is_vague else AuthenticationFailedError
        await refusal(missing, address, words, **kafka.tls(ssl_enabled_protocols=[version]))
        used = kafka.tls(ssl_enabled_protocols=[version], ssl_keystore_location=foreign)
        await refusal(AuthenticationFailedError, address, words, **used)


async def test_the_wrong_protocol_for_a_port_is_named(kafka: SecuredServer) -> None:
    words = "the peer ended the TLS handshake. Is this the port of a TLS listener?"
    await refusal(BootstrapError, kafka.address("PLAINTEXT"), words, **kafka.tls())
    await refusal(BootstrapError, kafka.address("SASL_PLAINTEXT"), words, **kafka.tls())
    if kafka.server.kind == "apache":  # it sends an alert of TLS; our broker closes the connection
        await refusal(NotKafkaError, kafka.address("SSL"), "(a TLS server?)")
    else:
        await refusal(BootstrapError, kafka.address("SSL"), "With TLS, set security_protocol to SSL")
    await refusal(BootstrapError, kafka.address("SASL_PLAINTEXT"), "If this listener demands authentication, set ")
    words = "authenticate as alice with PLAIN at localhost"
    error = await refusal(AuthenticationFailedError, kafka.address("PLAINTEXT"), words, **kafka.sasl())
    assert "the listener does not use SASL. Set security_protocol to PLAINTEXT" in str(error)


# SASL.


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["alice", "bob"])
async def test_each_mechanism_with_and_without_tls(kafka: SecuredServer, mechanism: str, name: str) -> None:
    await reach(kafka.address("SASL_PLAINTEXT"), security_protocol="SASL_PLAINTEXT", **user(mechanism, name))
    tls = kafka.tls(security_protocol="SASL_SSL")
    await reach(kafka.address("SASL_SSL"), **tls, **user(mechanism, name))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_wrong_password_and_an_unknown_user(
    kafka: SecuredServer, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    for wrong in (user(mechanism, sasl_password="wr0ng"), user(mechanism, sasl_username="carol")):
        words = (
            f"authenticate as {wrong['sasl_username']} with {mechanism} at {kafka.address('SASL_PLAINTEXT')}: the brok"
        )
        with caplog.at_level(logging.DEBUG):
            error = await refusal(
                AuthenticationFailedError,
                kafka.address("SASL_PLAINTEXT"),
                words,
                security_protocol="SASL_PLAINTEXT",
                **wrong,
            )
        assert "Authentication failed" in str(error)
        assert not error.retriable
        assert "wr0ng" not in str(error) + caplog.text
        assert USERS["alice"] not in str(error) + caplog.text


async def test_a_token_that_the_broker_refuses(kafka: SecuredServer) -> None:
    expired = f"{OAUTH_MODULE} required unsecuredLoginStringClaim_sub=alice unsecuredLoginLifetimeSeconds=1;"

    async def foreign() -> tuple[str, float]:
        return "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", time.time() + 60

    words = "authenticate with OAUTHBEARER at "
    protocol = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    error = await refusal(
        AuthenticationFailedError,
        kafka.address("SASL_PLAINTEXT"),
        words,
        sasl_oauth_token_provider=foreign,
        **protocol,
    )
    assert "invalid_token" in str(error)
    assert "eyJ" not in str(error)
    assert await reach(kafka.address("SASL_PLAINTEXT"), sasl_jaas_config=expired, **protocol)


async def test_a_mechanism_that_the_broker_has_not_enabled(kafka: SecuredServer) -> None:
    words = "the broker has not enabled this mechanism; it offers "
    error = await refusal(AuthenticationFailedError, kafka.address("SHORT"), words, **kafka.sasl("PLAIN"))
    assert all(mechanism in str(error).partition("it offers")[2] for mechanism in MECHANISMS[1:])


# Sessions.


async def test_sessions_are_renewed_under_load(kafka: SecuredServer) -> None:
    """The broker closes a connection whose session has ended; these outlive two sessions, and keep the order.

    A machine that stalls at the end of a session may lose one connection, whose requests are sent again.
    """
    await asyncio.gather(
        *(work_for_two_sessions(kafka.address("SHORT"), name) for name in ("SCRAM-SHA-256", "OAUTHBEARER"))
    )


async def work_for_two_sessions(address: str, mechanism: str) -> None:
    settings = {"security_protocol": "SASL_PLAINTEXT"} | user(mechanism, "admin")
    topic = f"sessions-{mechanism.lower()}"
    async with (
        Admin(address, **settings) as admin,
        Producer(address, **settings) as producer,
        Consumer(address, group_id=topic, auto_offset_reset="earliest", **settings) as consumer,
    ):
        (await admin.create_topics([NewTopic(topic, 1)])).values_or_raise()
        await consumer.subscribe([topic])
        received: list[int] = []

        async def consume() -> None:
            async for record in consumer:
                if record.value == b"end":
                    return
                received.append(int(record.value or b""))

        consuming = asyncio.create_task(consume())
        await (await producer.send(topic, b"0"))
        connections = producer._cluster.connections  # noqa: SLF001 - to see that they stay the same
        used = {*connections.all_established(Purpose.REQUESTS)}
        sent, until = 1, time.monotonic() + 2.2 * SESSION_MS / 1000
        while time.monotonic() < until:
            for _ in range(20):
                await producer.send(topic, b"%d" % sent)
                sent += 1
            await asyncio.sleep(0.002)
            used |= {*connections.all_established(Purpose.REQUESTS)}
        await (await producer.send(topic, b"end"))
        assert len(used) <= 2  # three, if none of two sessions had been renewed
        await asyncio.wait_for(consuming, 30)
    assert received == list(range(sent))
