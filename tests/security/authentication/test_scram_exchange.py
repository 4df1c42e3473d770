from __future__ import annotations

from base64 import b64encode

import pytest
from aiokafka.conn import ScramAuthenticator
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.scram import SaslMechanismScram

from odradek.broker.randomness import SeededRandomness, SystemRandomness
from odradek.broker.security.authentication.exchange import AuthenticationFailed
from odradek.broker.security.authentication.scram_exchange import ScramExchange
from odradek.broker.security.authentication.unknown_users import UnknownUsers, salt_from
from odradek.broker.security.principal import Principal
from odradek.protocol.sasl.errors import SaslError
from odradek.protocol.sasl.scram import SCRAM_SHA_256, SCRAM_SHA_512, ScramCredential, ScramMechanism
from odradek.protocol.sasl.scram_client import ScramClient
from odradek.protocol.sasl.scram_messages import ClientFinal, ClientFirst, ServerFirst
from tests.effort import examples
from tests.security.authentication.exchanges import failure

MECHANISMS = [SCRAM_SHA_256, SCRAM_SHA_512]
USERS = {
    (mechanism.name, name): ScramCredential.from_password(mechanism, f"{name}-secret", salt_from(name.encode() * 20))
    for mechanism in MECHANISMS
    for name in ("alice", "bob", "a,b=c")
}
UNKNOWN = UnknownUsers(b"a secret of the cluster, 32 bytes")
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
mechanisms = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)


def server(mechanism: ScramMechanism = SCRAM_SHA_256, unknown: UnknownUsers = UNKNOWN) -> ScramExchange:
    return ScramExchange(mechanism, lambda name: USERS.get((mechanism.name, name)), unknown, SystemRandomness())


def client(name: str = "alice", password: str | None = None, mechanism: ScramMechanism = SCRAM_SHA_256) -> ScramClient:
    return ScramClient(mechanism, name, password or f"{name}-secret", "clientNonce")


@mechanisms
@pytest.mark.parametrize("name", ["alice", "a,b=c"])
def test_a_user_with_its_password_is_accepted_and_sees_the_servers_signature(
    mechanism: ScramMechanism, name: str
) -> None:
    ours, exchange = client(name, mechanism=mechanism), server(mechanism)
    final = ours.final(exchange.step(ours.first()))
    assert exchange.principal is None
    ours.verify(exchange.step(final))
    assert exchange.principal == Principal("User", name)
    assert exchange.expires_at_ms is None
    with pytest.raises(AuthenticationFailed):
        exchange.step(final)


@pytest.mark.parametrize("name", ["alice", "nobody", "löwe"])
async def test_the_user_that_failed_is_named(name: str) -> None:
    exchange, first = server(), ClientFirst(name, "clientNonce").encode()
    assert exchange.user == ""
    await failure(exchange, first, b"c=biws,r=wrong,p=AAAA") if name.isascii() else await failure(exchange, first)
    assert exchange.user == name


@mechanisms
def test_clients_that_others_wrote_are_accepted(mechanism: ScramMechanism) -> None:
    python = SaslMechanismScram(
        sasl_plain_username="alice",
        sasl_plain_password="alice-secret",
        sasl_mechanism=mechanism.name,
        security_protocol="SASL_SSL",
    )
    exchange = server(mechanism)
    while not python.is_done():
        python.receive(exchange.step(python.auth_bytes()))
    assert exchange.principal == Principal("User", "alice")

    aio = ScramAuthenticator(
        loop=None, sasl_plain_password="a,b=c-secret", sasl_plain_username="a,b=c", sasl_mechanism=mechanism.name
    )
    exchange = server(mechanism)
    steps = aio.authenticator_scram()
    message, _ = next(steps)
    message, _ = steps.send(exchange.step(message))
    with pytest.raises(StopIteration):
        steps.send(exchange.step(message))
    assert exchange.principal == Principal("User", "a,b=c")


@mechanisms
async def test_an_unknown_user_fails_like_a_wrong_password_and_at_the_same_message(mechanism: ScramMechanism) -> None:
    outcomes = []
    for name in ("carol", "alice"):
        ours, exchange = client(name, "wrong", mechanism), server(mechanism)
        answer = exchange.step(ours.first())
        outcomes.append((await failure(exchange, ours.final(answer))).message)
        parsed = ServerFirst.decode(answer)
        assert parsed.iterations == 4096
        assert set(parsed.salt) <= set(b"0123456789abcdefghijklmnopqrstuvwxyz")
        assert 20 <= len(parsed.salt) <= 26
    assert outcomes[0] == outcomes[1]


@mechanisms
def test_the_salt_of_an_unknown_user_never_changes_and_is_its_own(mechanism: ScramMechanism) -> None:
    def salt(name: str, secret: UnknownUsers) -> bytes:
        return ServerFirst.decode(server(mechanism, secret).step(client(name, "x").first())).salt

    again = UnknownUsers(b"a secret of the cluster, 32 bytes")
    other = UnknownUsers(b"b secret of the cluster, 32 bytes")
    assert salt("carol", UNKNOWN) == salt("carol", again)
    assert len({salt("carol", UNKNOWN), salt("dave", UNKNOWN), salt("carol", other)}) == 3


def test_the_salts_and_keys_of_an_unknown_user_differ_between_mechanisms() -> None:
    credentials = [UNKNOWN.credential(mechanism, "carol") for mechanism in MECHANISMS]
    values = [value for each in credentials for value in (each.salt, each.stored_key, each.server_key)]
    assert len(set(values)) == 6
    assert [len(each.stored_key) for each in credentials] == [32, 64]


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32"):
        UnknownUsers(b"short")


async def test_a_proof_for_another_nonce_fails() -> None:  # CVE-2024-56128: a replayed final message
    ours, first, second = client(), server(), server()
    final = ours.final(first.step(ours.first()))
    first.step(final)
    assert first.principal is not None
    answer = second.step(ours.first())
    assert ServerFirst.decode(answer).nonce != ClientFinal.decode(final).nonce
    failed = await failure(second, final)
    assert "nonce" in failed.reason
    assert failed.message == INVALID


async def test_a_replay_with_the_nonce_of_the_new_exchange_fails() -> None:
    ours, first, second = client(), server(), server()
    replayed = ClientFinal.decode(ours.final(first.step(ours.first())))
    nonce = ServerFirst.decode(second.step(ours.first())).nonce
    failed = await failure(second, ClientFinal(replayed.channel_binding, nonce, replayed.proof).encode())
    assert "wrong password" in failed.reason


async def test_nobody_acts_for_another_user_whether_it_exists_or_not() -> None:  # CVE-2017-12610
    messages = set()
    for name in ("alice", "carol"):
        failed = await failure(server(), ClientFirst(name, "clientNonce", "bob").encode())
        messages.add(failed.message)
    assert messages == {
        "Authentication failed: Client requested an authorization id that is different from username"
    }  # fmt: skip


def test_an_authorization_id_equal_to_the_user_is_accepted() -> None:
    ours = ScramClient(SCRAM_SHA_256, "alice", "alice-secret", "clientNonce", authorization_id="alice")
    exchange = server()
    ours.verify(exchange.step(ours.final(exchange.step(ours.first()))))
    assert exchange.principal == Principal("User", "alice")


async def test_a_channel_binding_other_than_the_header_fails() -> None:
    ours, exchange = client(), server()
    final = ClientFinal.decode(ours.final(exchange.step(ours.first())))
    failed = await failure(exchange, ClientFinal(b"y,,", final.nonce, final.proof).encode())
    assert "channel binding" in failed.reason


def test_a_client_that_supports_channel_binding_itself_is_accepted() -> None:
    first = ClientFirst("alice", "clientNonce", flag="y")
    exchange = server()
    ours = client()
    ours._first = first  # noqa: SLF001 - the header is the client's own
    ours.verify(exchange.step(ours.final(exchange.step(first.encode()))))
    assert exchange.principal is not None


@pytest.mark.parametrize("value", ["true", "TRUE"])
async def test_a_delegation_token_is_an_unknown_user_even_if_its_id_is_a_users_name(value: str) -> None:
    first = ClientFirst("alice", "clientNonce", extensions=(("tokenauth", value),))
    ours, exchange = client(), server()
    ours._first = first  # noqa: SLF001 - whatever else, the password is right
    failed = await failure(exchange, first.encode(), ours.final(server().step(first.encode())))
    assert failed.message == INVALID
    exchange = server()
    failed = await failure(exchange, ours.final(exchange.step(first.encode())))
    assert failed.reason == "unknown user 'alice'"


async def test_a_demanded_extension_fails() -> None:
    failed = await failure(server(), b"n,,m=x,n=alice,r=clientNonce")
    assert "extension" in failed.reason


async def test_a_name_that_is_not_ascii_fails() -> None:
    await failure(server(), ClientFirst("löwe", "clientNonce").encode())


@pytest.mark.parametrize("iterations", [1, 4095, 16385])
async def test_a_stored_credential_with_too_few_or_too_many_iterations_fails(iterations: int) -> None:
    credential = ScramCredential(b"salt", b"x" * 32, b"y" * 32, iterations)
    exchange = ScramExchange(SCRAM_SHA_256, lambda name: credential, UNKNOWN, SystemRandomness())
    assert (await failure(exchange, client().first())).message == INVALID


async def test_a_final_message_in_place_of_the_first_fails() -> None:
    ours = client()
    await failure(server(), ours.final(server().step(ours.first())))


async def test_a_first_message_in_place_of_the_final_fails() -> None:
    await failure(server(), client().first(), client().first())


async def test_every_prefix_of_both_messages_fails() -> None:
    ours = client()
    first = ours.first()
    for end in range(len(first)):
        exchange = server()
        try:
            exchange.step(first[:end])
        except AuthenticationFailed:
            continue
        assert exchange.principal is None  # a shorter nonce: a valid message
    final = ours.final(server().step(first))
    for end in range(len(final)):
        exchange = server()
        exchange.step(first)
        await failure(exchange, final[:end])


@pytest.mark.parametrize("size", [17 * 1024, 8 * 1024 * 1024])
async def test_large_messages_fail(size: int) -> None:
    assert len((await failure(server(), b"n,,n=alice,r=".ljust(size, b"x"))).reason) < 200
    assert len((await failure(server(), client().first(), b"c=biws,r=".ljust(size, b"x"))).reason) < 200


async def test_a_proof_of_another_length_fails() -> None:
    for proof in (b"", b"x" * 31, b"x" * 33, b"x" * 64):
        ours, exchange = client(), server()
        final = ClientFinal.decode(ours.final(exchange.step(ours.first())))
        await failure(exchange, ClientFinal(final.channel_binding, final.nonce, proof).encode())


@given(st.data())
@examples(200)
def test_one_changed_byte_anywhere_fails(data: st.DataObject) -> None:
    """Of the client's final message."""
    ours, exchange = client(), server()
    final = bytearray(ours.final(exchange.step(ours.first())))
    at = data.draw(st.integers(0, len(final) - 1))
    final[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(AuthenticationFailed):
        exchange.step(bytes(final))
    assert exchange.principal is None


def test_server_nonces_are_unpredictable_and_used_once() -> None:
    nonces = {ServerFirst.decode(server().step(client().first())).nonce for _ in range(100)}
    assert len(nonces) == 100
    assert {len(nonce) for nonce in nonces} == {len("clientNonce") + 32}


def test_a_seed_repeats_a_nonce() -> None:
    answers = set()
    for _ in range(2):
        exchange = ScramExchange(SCRAM_SHA_256, lambda name: None, UNKNOWN, SeededRandomness(1))
        answers.add(exchange.step(client().first()))
    assert len(answers) == 1


async def test_no_failure_has_a_secret() -> None:
    stored = USERS["SCRAM-SHA-256", "alice"]
    ours, exchange = client(password="wrong-password"), server()
    failed = await failure(exchange, ours.final(exchange.step(ours.first())))
    for secret in ("wrong-password", b64encode(stored.stored_key).decode(), stored.salt.decode()):
        assert secret not in failed.message + failed.reason + repr(exchange)


def test_a_client_notices_a_server_without_the_credential() -> None:
    ours, exchange = client(), server()
    ours.final(exchange.step(ours.first()))
    with pytest.raises(SaslError):
        ours.verify(b"v=" + b64encode(bytes(32)))
