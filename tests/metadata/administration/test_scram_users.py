from __future__ import annotations

import asyncio

import pytest

from odradek.broker.metadata.administration.scram_users import ScramAlterations, unknown_users_secret
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import load_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.scram_users import ScramSecret, ScramUser
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, MetadataStore, Put, StoreError
from odradek.broker.metadata.values import encode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from odradek.protocol.sasl.scram import ScramCredential
from tests.metadata.conftest import Start, until

KEYS = Keys()
CREDENTIAL = ScramCredential(b"the salt", b"the stored key", b"the server key", 4096)


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"x" * (32 if mechanism == 1 else 64))


async def upsert(metadata: Metadata, *changes: ScramCredentialUpsertion) -> None:
    alterations = ScramAlterations(metadata)
    for change in changes:
        alterations.upsert(change)
    assert set((await alterations.commit()).values()) <= {None}


async def test_users_of_one_broker_are_known_to_the_others(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1, is_shared=False), await start(shared, 2)
    await upsert(first, upsertion("alice"))
    image = await until(second, lambda image: "alice" in image.scram_users.users)
    assert image.scram_users == first.image.scram_users


async def test_two_brokers_that_alter_the_same_user_lose_no_credential(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    for round_ in range(5):
        iterations = 4096 + round_
        await asyncio.gather(
            upsert(first, upsertion("alice", 1, iterations), upsertion("bob", 1, iterations)),
            upsert(second, upsertion("alice", 2, iterations), upsertion("bob", 2, iterations)),
        )
        for name in ("alice", "bob"):
            image = await until(
                first, lambda image, name=name: len(image.scram_users.users[name].user.credentials) == 2
            )
            credentials = image.scram_users.users[name].user.credentials
            assert {each.iterations for each in credentials.values()} == {iterations}


async def test_a_credential_that_another_broker_deletes_meanwhile_is_not_found(
    shared: InMemoryStore, start: Start
) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await upsert(first, upsertion("alice"))
    await until(second, lambda image: "alice" in image.scram_users.users)
    here, there = ScramAlterations(first), ScramAlterations(second)
    here.delete("alice", 1)
    there.delete("alice", 1)
    outcomes = [(await here.commit())["alice"], (await there.commit())["alice"]]
    assert [None if error is None else error.code for error in outcomes] == [None, ErrorCode.RESOURCE_NOT_FOUND]
    assert first.image.scram_users.users == {}


async def test_a_failed_store_is_an_error_of_each_user(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    alterations = ScramAlterations(metadata)
    alterations.upsert(upsertion("alice"))
    alterations.upsert(upsertion("bob", 9))
    await metadata.stop(clean=False)
    outcomes = await alterations.commit()
    assert {name: error.code for name, error in outcomes.items() if error is not None} == {
        "alice": ErrorCode.KAFKA_STORAGE_ERROR,
        "bob": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    }


async def test_all_brokers_of_a_cluster_have_one_secret_which_stays(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    secrets = await asyncio.gather(*[unknown_users_secret(each) for each in (first, second, first)])
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32
    later = await start(shared, 3)
    assert await unknown_users_secret(later) == secrets[0]
    assert secrets[0].hex() not in repr(later.image)
    assert repr(secrets[0]) not in repr(later.image)


async def test_a_stopped_store_has_no_secret(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    await metadata.stop(clean=False)
    with pytest.raises(KafkaError):
        await unknown_users_secret(metadata)


def stored(key: bytes, value: bytes, revision: int = 5) -> KV:
    return KV(key, value, revision, revision)


def test_an_image_has_users_and_secret_and_shows_neither() -> None:
    kvs = [
        stored(KEYS.scram_secret, encode(ScramSecret(b"the secret of the cluster"))),
        stored(KEYS.scram_user("a/b"), encode(ScramUser({"SCRAM-SHA-256": CREDENTIAL})), 7),
    ]
    users = load_image(KEYS, MetadataImage(), kvs, 7).after.scram_users
    assert users.credential("SCRAM-SHA-256", "a/b") == CREDENTIAL
    assert users.users["a/b"].revision == 7
    assert users.secret == ScramSecret(b"the secret of the cluster")
    for hidden in ("the salt", "the stored key", "the server key", "the secret"):
        assert hidden not in repr(users)


@pytest.mark.parametrize("value", [b"", b"{}", b'{"credentials": {"SCRAM-SHA-256": {}}}', b'{"secret": "!"}'])
def test_a_value_that_cannot_be_read_is_reported_with_its_key_only(value: bytes) -> None:
    for key in (KEYS.scram_user("alice"), KEYS.scram_secret):
        with pytest.raises(StoreError, match=key.decode()):
            load_image(KEYS, MetadataImage(), [stored(key, value)], 5)


async def test_users_of_a_later_version_are_passed_over(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    result = await metadata.commit((), (Put(KEYS.prefix + b"/scram/later", b"?"),))
    assert result.ok
    assert metadata.image.scram_users.users == {}
