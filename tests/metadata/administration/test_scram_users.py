from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.administration.scram_users import ScramAlterations, unknown_users_secret
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import load_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.registration import Installation
from odradek.broker.metadata.scram_users import ScramSecret, ScramUser
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, MetadataStore, Put, StoreError
from odradek.broker.metadata.values import encode
from odradek.broker.randomness import SeededRandomness
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS, ScramCredential
from tests.effort import examples
from tests.metadata.conftest import CLUSTER_ID, LISTENERS, Start, until

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


names = st.sampled_from(["alice", "bob", "carol", ""])
kinds = st.integers(0, 3)  # of which 1 and 2 are mechanisms
requests = st.lists(
    st.tuples(
        st.lists(st.tuples(names, kinds), max_size=4),
        st.lists(st.tuples(names, kinds, st.sampled_from([4095, 4096, 8192, 16385])), max_size=4),
    ),
    max_size=6,
)
Model = dict[tuple[str, int], int]
"""Iterations by user and mechanism."""


def expected(model: Model, deletions: list[tuple[str, int]], upsertions: list[tuple[str, int, int]]) -> dict[str, int]:
    """Apply a request to the model by the rules of KIP-554; return the error code of each user."""
    named = [name for name, *_ in (*deletions, *upsertions)]
    codes: dict[str, int] = {}
    after = dict(model)
    for position, (name, kind, *iterations) in enumerate([*deletions, *upsertions]):
        code = 0
        if not name:
            code = ErrorCode.UNACCEPTABLE_CREDENTIAL
        elif kind not in (1, 2):
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        elif not iterations and (name, kind) not in model:
            code = ErrorCode.RESOURCE_NOT_FOUND
        elif iterations and not 4096 <= iterations[0] <= 16384:
            code = ErrorCode.UNACCEPTABLE_CREDENTIAL
        if name in named[:position]:
            if codes[name] == 0:  # the first change was valid, and is revoked
                codes[name] = ErrorCode.DUPLICATE_RESOURCE
            continue
        codes[name] = code
    for name, kind, *iterations in (*deletions, *upsertions):
        if codes[name] == 0 and iterations:
            after[name, kind] = iterations[0]
        elif codes[name] == 0:
            del after[name, kind]
    model.clear()
    model.update(after)
    return codes


@given(requests)
@examples(100)
def test_any_requests_have_the_outcomes_of_a_model(
    requests: list[tuple[list[tuple[str, int]], list[tuple[str, int, int]]]],
) -> None:
    async def run() -> None:
        store = InMemoryStore()
        metadata = await started(store)
        model: Model = {}
        for deletions, upsertions in requests:
            alterations = ScramAlterations(metadata)
            for name, kind in deletions:
                alterations.delete(name, kind)
            for change in upsertions:
                alterations.upsert(upsertion(*change))
            outcomes = await alterations.commit()
            found = {name: 0 if error is None else int(error.code) for name, error in outcomes.items()}
            assert found == expected(model, deletions, upsertions)
            users = metadata.image.scram_users.users
            assert {
                (name, SCRAM_MECHANISMS[mechanism].id): credential.iterations
                for name, each in users.items()
                for mechanism, credential in each.user.credentials.items()
            } == model
            assert all(each.user.credentials for each in users.values())
        await metadata.stop(clean=False)
        await store.close()

    asyncio.run(run())


async def started(store: MetadataStore) -> Metadata:
    metadata = Metadata(
        BrokerConfig.load(None, {}),
        store,
        installation=Installation(CLUSTER_ID, ("log dir",), "boot", software="0.0"),
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        on_failure=lambda _what, error: pytest.fail(str(error)),
    )
    await metadata.start(LISTENERS)
    return metadata


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
