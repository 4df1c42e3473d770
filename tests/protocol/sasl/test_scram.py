"""SCRAM against the exchanges printed in RFC 5802 (SHA-1) and RFC 7677 (SHA-256), and clients that others wrote."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from aiokafka.conn import ScramAuthenticator
from kafka.net.sasl.scram import ScramClient as KafkaPythonClient

from odradek.protocol.sasl import scram
from odradek.protocol.sasl.errors import SaslMessageError, SaslRefusedError, UntrustedServerError
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS, SCRAM_SHA_256, SCRAM_SHA_512, ScramCredential, ScramMechanism
from odradek.protocol.sasl.scram_client import MAXIMUM_CLIENT_ITERATIONS, ScramClient
from odradek.protocol.sasl.scram_messages import ClientFinal, ClientFirst, ServerFinal, ServerFirst, auth_message


@dataclass(frozen=True)
class Exchange:
    mechanism: ScramMechanism
    client_nonce: str
    client_first: bytes
    server_first: bytes
    client_final: bytes
    server_final: bytes


RFC_5802 = Exchange(
    ScramMechanism("SCRAM-SHA-1", 0, "sha1", 20),
    "fyko+d2lbbFgONRv9qkxdawL",
    b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
RFC_7677 = Exchange(
    SCRAM_SHA_256,
    "rOprNGfwEbeRWgbNEkqO",
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
exchanges = pytest.mark.parametrize("exchange", [RFC_5802, RFC_7677], ids=["RFC 5802", "RFC 7677"])
mechanisms = pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512], ids=lambda mechanism: mechanism.name)


@exchanges
def test_the_messages_of_the_rfcs_decode_and_encode(exchange: Exchange) -> None:
    for message, decode in [
        (exchange.client_first, ClientFirst.decode),
        (exchange.server_first, ServerFirst.decode),
        (exchange.client_final, ClientFinal.decode),
        (exchange.server_final, ServerFinal.decode),
    ]:
        assert decode(message).encode() == message


@exchanges
def test_a_client_sends_what_the_client_of_the_rfcs_sends(exchange: Exchange) -> None:
    client = ScramClient(exchange.mechanism, "user", "pencil", exchange.client_nonce)
    assert client.first() == exchange.client_first
    assert client.final(exchange.server_first) == exchange.client_final
    client.verify(exchange.server_final)


@exchanges
def test_a_server_accepts_the_proof_of_the_rfcs_and_signs_as_they_do(exchange: Exchange) -> None:
    first, final = ServerFirst.decode(exchange.server_first), ClientFinal.decode(exchange.client_final)
    credential = ScramCredential.from_password(exchange.mechanism, "pencil", first.salt, first.iterations)
    signed = auth_message(ClientFirst.decode(exchange.client_first), first, final)
    assert scram.is_proof(exchange.mechanism, credential, signed, final.proof)
    signature = scram.server_signature(exchange.mechanism, credential.server_key, signed)
    assert ServerFinal(signature).encode() == exchange.server_final


@exchanges
def test_a_server_refuses_the_proof_of_another_password_nonce_or_length(exchange: Exchange) -> None:
    first, final = ServerFirst.decode(exchange.server_first), ClientFinal.decode(exchange.client_final)
    signed = auth_message(ClientFirst.decode(exchange.client_first), first, final)
    other = ScramCredential.from_password(exchange.mechanism, "pencils", first.salt, first.iterations)
    right = ScramCredential.from_password(exchange.mechanism, "pencil", first.salt, first.iterations)
    assert not scram.is_proof(exchange.mechanism, other, signed, final.proof)
    assert not scram.is_proof(exchange.mechanism, right, signed.replace(b"r=", b"r=x", 1), final.proof)
    assert not scram.is_proof(exchange.mechanism, right, signed, final.proof[:-1])
    assert not scram.is_proof(exchange.mechanism, right, signed, final.proof + b"\0")
    assert not scram.is_proof(exchange.mechanism, right, signed, b"")


def serve(mechanism: ScramMechanism, password: str, client_first: bytes) -> tuple[ScramCredential, ServerFirst, bytes]:
    """Return a server's credential of the client, its first message, and the first part of AuthMessage."""
    first = ClientFirst.decode(client_first)
    credential = ScramCredential.from_password(mechanism, password, b"salt of sixteen!", 4096)
    answer = ServerFirst(first.nonce + "theRestOfIt", credential.salt, credential.iterations)
    return credential, answer, first.bare.encode()


@mechanisms
@pytest.mark.parametrize("password", ["pencil", "größer als ein ¼ 鍵"])
def test_clients_that_others_wrote_are_accepted_and_accept_the_signature(
    mechanism: ScramMechanism, password: str
) -> None:
    ours = ScramClient(mechanism, "alice", password, "aNonce")
    python = KafkaPythonClient("alice", password, mechanism.name)
    aio = ScramAuthenticator(
        loop=None, sasl_plain_password=password, sasl_plain_username="alice", sasl_mechanism=mechanism.name
    )
    for first, final, verify in [
        (ours.first(), ours.final, ours.verify),
        (
            python.first_message(),
            lambda message: python.process_server_first_message(message) or python.final_message(),
            python.process_server_final_message,
        ),
        (
            aio.first_message().encode(),
            lambda message: aio.process_server_first_message(message.decode()) or aio.final_message().encode(),
            lambda message: aio.process_server_final_message(message.decode()),
        ),
    ]:
        credential, answer, bare = serve(mechanism, password, first)
        client_final = ClientFinal.decode(final(answer.encode()))
        signed = b",".join([bare, answer.encode(), client_final.without_proof.encode()])
        assert scram.is_proof(mechanism, credential, signed, client_final.proof)
        verify(ServerFinal(scram.server_signature(mechanism, credential.server_key, signed)).encode())


def test_a_salted_password_gives_the_credential_of_its_password() -> None:
    salted = scram.salted_password(SCRAM_SHA_512, "secret", b"salt", 8192)
    credential = ScramCredential.from_salted_password(SCRAM_SHA_512, salted, b"salt", 8192)
    assert credential == ScramCredential.from_password(SCRAM_SHA_512, "secret", b"salt", 8192)


def test_the_mechanisms_have_the_numbers_and_sizes_of_kafka() -> None:
    assert {name: (mechanism.id, mechanism.digest_size) for name, mechanism in SCRAM_MECHANISMS.items()} == {
        "SCRAM-SHA-256": (1, 32),
        "SCRAM-SHA-512": (2, 64),
    }


def test_the_repr_of_a_credential_shows_nothing() -> None:
    credential = ScramCredential.from_password(SCRAM_SHA_256, "secret", b"salt", 4096)
    assert repr(credential) == str(credential) == "ScramCredential(hidden)"
    assert "secret" not in repr(ScramClient(SCRAM_SHA_256, "alice", "secret", "aNonce"))


class TestAClientAndAHostileServer:
    def client(self) -> ScramClient:
        return ScramClient(SCRAM_SHA_256, "user", "pencil", RFC_7677.client_nonce)

    @pytest.mark.parametrize("nonce", ["other", "rOprNGfwEbeRWgbNEkqO", "rOprNGfwEbeRWgbNEkqPmore"])
    def test_refuses_a_nonce_that_does_not_continue_its_own(self, nonce: str) -> None:
        with pytest.raises(UntrustedServerError, match="nonce"):
            self.client().final(ServerFirst(nonce, b"salt", 4096).encode())

    @pytest.mark.parametrize("iterations", [1, 4095, MAXIMUM_CLIENT_ITERATIONS + 1, 9_999_999_999])
    def test_refuses_iterations_that_protect_too_little_or_last_too_long(self, iterations: int) -> None:
        with pytest.raises(UntrustedServerError, match=r"asks for .* iterations?;"):
            self.client().final(ServerFirst(RFC_7677.client_nonce + "x", b"salt", iterations).encode())

    def test_refuses_a_wrong_signature(self) -> None:
        client = self.client()
        client.final(RFC_7677.server_first)
        with pytest.raises(UntrustedServerError, match="signature"):
            client.verify(RFC_5802.server_final)

    def test_refuses_a_final_message_before_it_has_sent_a_proof(self) -> None:
        with pytest.raises(UntrustedServerError):
            self.client().verify(RFC_7677.server_final)

    def test_reports_a_refusal_without_the_servers_text(self) -> None:
        client = self.client()
        client.final(RFC_7677.server_first)
        with pytest.raises(SaslRefusedError) as raised:
            client.verify(b"e=invalid-proof of pencil")
        assert "pencil" not in str(raised.value)

    def test_refuses_a_demanded_extension(self) -> None:
        with pytest.raises(SaslMessageError):
            self.client().final(b"m=x," + RFC_7677.server_first)


def test_a_client_with_a_delegation_token_says_so() -> None:
    client = ScramClient(SCRAM_SHA_256, "tokenId", "hmac", "aNonce", token=True)
    assert client.first() == b"n,,n=tokenId,r=aNonce,tokenauth=true"


def test_a_client_escapes_its_name_and_repeats_its_header() -> None:
    client = ScramClient(SCRAM_SHA_256, "a,b=c", "pw", "aNonce", authorization_id="a,b=c")
    assert client.first() == b"n,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=aNonce"
    final = ClientFinal.decode(client.final(ServerFirst("aNoncex", b"salt", 4096).encode()))
    assert final.channel_binding == b"n,a=a=2Cb=3Dc,"


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_client_cannot_have_a_name_that_no_message_can_have(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        ScramClient(SCRAM_SHA_256, name, "pw", "aNonce")


@pytest.mark.parametrize("nonce", ["", "a,b", "a b", "ä"])
def test_a_client_cannot_have_a_nonce_that_no_message_can_have(nonce: str) -> None:
    with pytest.raises(ValueError, match="nonce"):
        ScramClient(SCRAM_SHA_256, "alice", "pw", nonce)
