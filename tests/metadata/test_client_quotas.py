from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.client_quotas import encode_limits, entity_at, quota_key
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import UnreadableValueError, load_image, next_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV, Batch, Change
from odradek.broker.quotas.entities import Entity, entity_of

KEYS = Keys()
NAMES = st.none() | st.text(min_size=1, max_size=20)
ENTITIES = st.one_of(
    st.builds(lambda user: entity_of([("user", user)]), NAMES),
    st.builds(lambda client_id: entity_of([("client-id", client_id)]), NAMES),
    st.builds(lambda user, client_id: entity_of([("user", user), ("client-id", client_id)]), NAMES, NAMES),
    st.builds(lambda ip: entity_of([("ip", ip)]), NAMES),
)
ALICE = entity_of([("user", "alice")])


@given(ENTITIES)
def test_a_key_names_its_entity(entity: Entity) -> None:
    assert entity_at(KEYS, quota_key(KEYS, entity)) == entity


@given(ENTITIES, ENTITIES)
def test_two_entities_have_two_keys(one: Entity, other: Entity) -> None:
    assert (quota_key(KEYS, one) == quota_key(KEYS, other)) == (one == other)


def test_a_key_can_be_read_by_people() -> None:
    entity = entity_of([("client-id", None), ("user", "CN=alice/x, O=<default>")])

    assert quota_key(KEYS, entity) == (
        b"/odradek/v1/quotas/users/CN%3Dalice%2Fx%2C%20O%3D%3Cdefault%3E/clients/<default>"
    )


def kv(entity: Entity, limits: dict[str, float], revision: int) -> KV:
    return KV(quota_key(KEYS, entity), encode_limits(limits), revision, revision)


def test_the_image_has_the_quotas_and_earlier_images_stay() -> None:
    empty = MetadataImage()
    stored = kv(ALICE, {"producer_byte_rate": 10.0}, 3)
    first = next_image(KEYS, empty, Batch(3, (Change(stored.key, stored),))).after
    second = next_image(KEYS, first, Batch(4, (Change(stored.key, None),))).after

    assert empty.client_quotas == {}
    assert first.client_quotas == {ALICE: ({"producer_byte_rate": 10.0}, 3)}
    assert second.client_quotas == {}


def test_another_change_shares_the_quotas() -> None:
    stored = kv(ALICE, {"producer_byte_rate": 10.0}, 3)
    image = load_image(KEYS, MetadataImage(), [stored], 3).after
    after = next_image(KEYS, image, Batch(4, (Change(KEYS.features, None),))).after

    assert after.client_quotas is image.client_quotas


@pytest.mark.parametrize("name", [b"users", b"teams/x", b"users/a/clients"])
def test_a_key_of_no_entity_is_unreadable(name: bytes) -> None:
    key = KEYS.client_quotas + name
    with pytest.raises(UnreadableValueError, match="no entity"):
        next_image(KEYS, MetadataImage(), Batch(3, (Change(key, KV(key, b"{}", 3, 3)),)))
