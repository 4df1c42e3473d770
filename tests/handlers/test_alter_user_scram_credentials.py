from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from odradek.protocol.sasl.scram import SCRAM_SHA_256, SCRAM_SHA_512, ScramCredential
from tests.wire import Wire

SHA_256, SHA_512 = 1, 2
NONE = (ErrorCode.NONE, None)
TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NOT_FOUND = (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def salted(password: str, mechanism: int = SHA_256, iterations: int = 4096) -> bytes:
    return hashlib.pbkdf2_hmac("sha256" if mechanism == SHA_256 else "sha512", password.encode(), b"salt", iterations)


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096, **changes: Any) -> ScramCredentialUpsertion:
    values = {"salt": b"salt", "salted_password": salted("secret", mechanism)} | changes
    return ScramCredentialUpsertion(name, mechanism, iterations, **values)


async def alter(
    wire: Wire, deletions: Sequence[tuple[str, int]] = (), upsertions: Sequence[ScramCredentialUpsertion] = ()
) -> dict[str, tuple[int, str | None]]:
    deleted = [ScramCredentialDeletion(*each) for each in deletions]
    response = await wire.ask(AlterUserScramCredentialsRequest(deleted, list(upsertions)), 0)
    assert len({row.user for row in response.results}) == len(response.results)
    return {row.user: (row.error_code, row.error_message) for row in response.results}


async def described(wire: Wire) -> dict[str, list[tuple[int, int]]]:
    response = await wire.ask(DescribeUserScramCredentialsRequest(None), 0)
    return {
        row.user: sorted((info.mechanism, info.iterations) for info in row.credential_infos) for row in response.results
    }


async def becomes(wire: Wire, expected: dict[str, list[tuple[int, int]]]) -> bool:
    """Whether these are all users; Apache Kafka's broker applies a change some milliseconds after the response."""
    for _ in range(200):
        if await described(wire) == expected:
            return True
    return False


@pytest.fixture(autouse=True)
async def nobody_is_left(wire: Wire) -> AsyncIterator[None]:
    """Leave Apache Kafka, which all tests share, without users."""
    yield
    for mechanism in (SHA_256, SHA_512):
        names = [name for name, infos in (await described(wire)).items() if mechanism in dict(infos)]
        await alter(wire, [(name, mechanism) for name in names])


async def test_users_are_set_changed_and_deleted(wire: Wire) -> None:
    assert await alter(wire, upsertions=[upsertion("alice"), upsertion("bob", SHA_512, 8192)]) == {
        "alice": NONE,
        "bob": NONE,
    }
    assert await becomes(wire, {"alice": [(SHA_256, 4096)], "bob": [(SHA_512, 8192)]})

    await alter(wire, upsertions=[upsertion("alice", SHA_512), upsertion("bob", SHA_512, 16384)])
    assert await becomes(wire, {"alice": [(SHA_256, 4096), (SHA_512, 4096)], "bob": [(SHA_512, 16384)]})

    assert await alter(wire, [("alice", SHA_256), ("bob", SHA_512)], [upsertion("carol")]) == dict.fromkeys(
        ["alice", "bob", "carol"], NONE
    )
    assert await becomes(wire, {"alice": [(SHA_512, 4096)], "carol": [(SHA_256, 4096)]})


async def test_an_empty_request_changes_nothing(wire: Wire) -> None:
    assert await alter(wire) == {}


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (upsertion("alice", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("alice", iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("alice", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("", 7), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("alice", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("alice", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("alice", -1), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
    ],
    ids=range(8),
)
async def test_an_upsertion_is_refused_and_others_apply(
    wire: Wire, change: ScramCredentialUpsertion, code: ErrorCode, message: str
) -> None:
    assert await alter(wire, upsertions=[change, upsertion("bob")]) == {change.name: (code, message), "bob": NONE}
    assert await becomes(wire, {"bob": [(SHA_256, 4096)]})


@pytest.mark.usefixtures("only_here")
@pytest.mark.parametrize(
    "changes",
    [
        {"salt": b""},
        {"salt": b"x" * 1025},
        {"salted_password": b""},
        {"salted_password": b"x" * 31},
        {"salted_password": b"x" * 64},
    ],
    ids=str,
)
async def test_a_credential_that_no_client_can_use_is_refused(wire: Wire, changes: dict[str, bytes]) -> None:
    [(code, _)] = (await alter(wire, upsertions=[upsertion("alice", **changes)])).values()
    assert code == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert await becomes(wire, {})


@pytest.mark.usefixtures("only_here")
async def test_a_long_name_is_refused(wire: Wire) -> None:
    longest = "ä" * 512
    outcomes = await alter(wire, upsertions=[upsertion(longest), upsertion(longest + "x")])
    assert [code for code, _ in outcomes.values()] == [ErrorCode.UNACCEPTABLE_CREDENTIAL, ErrorCode.NONE]


@pytest.mark.parametrize(
    ("deletion", "outcome"),
    [
        (("alice", SHA_512), NOT_FOUND),
        (("nobody", SHA_256), NOT_FOUND),
        (("alice", 9), (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")),
        (("", SHA_256), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")),
    ],
)
async def test_a_deletion_is_refused(wire: Wire, deletion: tuple[str, int], outcome: tuple[int, str | None]) -> None:
    await alter(wire, upsertions=[upsertion("alice")])
    assert await alter(wire, [deletion]) == {deletion[0]: outcome}
    assert await becomes(wire, {"alice": [(SHA_256, 4096)]})


async def test_a_user_that_is_altered_twice_stays_as_it_is(wire: Wire) -> None:
    await alter(wire, upsertions=[upsertion("alice"), upsertion("bob")])
    outcomes = await alter(
        wire,
        [("alice", SHA_256), ("bob", SHA_256), ("bob", SHA_256), ("bob", SHA_256)],
        [upsertion("alice", SHA_512), upsertion("carol"), upsertion("carol"), upsertion("carol"), upsertion("dave")],
    )
    assert outcomes == {"alice": TWICE, "bob": TWICE, "carol": TWICE, "dave": NONE}
    assert await becomes(wire, {name: [(SHA_256, 4096)] for name in ("alice", "bob", "dave")})


async def test_the_first_error_of_a_user_counts(wire: Wire) -> None:
    assert await alter(wire, upsertions=[upsertion("alice", 9), upsertion("alice")]) == {
        "alice": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    }
    assert await alter(wire, [("alice", SHA_256)], [upsertion("alice")]) == {"alice": NOT_FOUND}
    assert await becomes(wire, {})


async def test_more_users_than_one_transaction_has(wire: Wire) -> None:
    names = [f"user-{index}" for index in range(250)]
    assert await alter(wire, upsertions=[upsertion(name) for name in names]) == dict.fromkeys(names, NONE)
    assert await becomes(wire, {name: [(SHA_256, 4096)] for name in names})
    assert await alter(wire, [(name, SHA_256) for name in names]) == dict.fromkeys(names, NONE)
    assert await becomes(wire, {})


async def test_names_may_have_any_characters(wire: Wire) -> None:
    names = ["a/b", "löwe", "a,b=c", " ", "../secret", "a\0b", "%"]
    await alter(wire, upsertions=[upsertion(name) for name in names])
    assert await becomes(wire, {name: [(SHA_256, 4096)] for name in names})


async def test_the_stored_credential_is_that_of_the_password_and_has_no_password(broker: Broker, wire: Wire) -> None:
    change = upsertion("alice")
    await alter(wire, upsertions=[change, upsertion("bob", SHA_512)])

    users = broker.services.metadata.image.scram_users
    expected = ScramCredential.from_password(SCRAM_SHA_256, "secret", b"salt", 4096)
    assert users.credential("SCRAM-SHA-256", "alice") == expected
    assert users.credential("SCRAM-SHA-512", "bob") == ScramCredential.from_password(
        SCRAM_SHA_512, "secret", b"salt", 4096
    )
    assert users.credential("SCRAM-SHA-512", "alice") is None
    assert users.credential("SCRAM-SHA-512", "nobody") is None
    shown = repr(users) + repr(change)
    assert "hidden" in shown
    assert "salt" not in shown.replace("salted_password", "")
    kvs, _ = await broker.services.metadata.store.range(broker.services.metadata.keys.scram_users)
    assert all(change.salted_password not in kv.value and b"secret" not in kv.value for kv in kvs)


async def test_users_survive_a_restart(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    properties = {"log.dirs": str(tmp_path / "logs")}
    with caplog.at_level(logging.DEBUG):
        async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
            await alter(wire, upsertions=[upsertion("alice", SHA_512, 8192)])
        async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
            assert await becomes(wire, {"alice": [(SHA_512, 8192)]})
            credential = broker.services.metadata.image.scram_users.credential("SCRAM-SHA-512", "alice")
    assert credential == ScramCredential.from_salted_password(SCRAM_SHA_512, salted("secret", SHA_512), b"salt", 8192)
    assert repr(credential.stored_key) not in caplog.text
