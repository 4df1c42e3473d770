from __future__ import annotations

import msgspec

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.access_rules import create_rules, delete_rules
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.security.access.rule import AccessRule
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.broker.startup.authorizer import make_authorizer
from odradek.broker.testing.snapshots import Snapshots
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType

ALICE = Principal("User", "alice")
RULE = AccessRule(
    ResourceType.TOPIC, PatternType.PREFIXED, "orders-", str(ALICE), "*", Operation.READ, PermissionType.ALLOW
)
READING = "127.0.0.1", Operation.READ, ResourceType.TOPIC, "orders-1"


async def test_the_authorizer_follows_the_rules_of_the_cluster() -> None:
    async with Broker() as broker:
        metadata = broker.services.metadata
        authorizer = make_authorizer(metadata, [ANONYMOUS], allow_everyone=False)
        assert authorizer.allows(ANONYMOUS, *READING)
        assert not authorizer.allows(ALICE, *READING)

        await create_rules(metadata, [RULE])
        assert authorizer.allows(ALICE, *READING)
        later = make_authorizer(metadata, [], allow_everyone=False)
        assert later.allows(ALICE, *READING)

        await delete_rules(metadata, [RULE])
        assert not authorizer.allows(ALICE, *READING)
        assert not later.allows(ALICE, *READING)


async def test_other_changes_of_the_metadata_keep_decisions() -> None:
    async with Broker() as broker:
        metadata = broker.services.metadata
        authorizer = make_authorizer(metadata, [], allow_everyone=True)
        before = authorizer.version
        await create_topic(metadata, "t")
        assert authorizer.version == before
        assert authorizer.allows(ALICE, *READING)


async def test_a_restored_snapshot_has_its_rules() -> None:
    async with Broker() as broker:
        metadata, snapshots = broker.services.metadata, Snapshots(broker)
        authorizer = make_authorizer(metadata, [], allow_everyone=False)
        other = msgspec.structs.replace(RULE, permission=PermissionType.DENY)
        await create_rules(metadata, [RULE])
        state = await snapshots.snapshot()
        await delete_rules(metadata, [RULE])
        await create_rules(metadata, [other])
        assert not authorizer.allows(ALICE, *READING)

        await snapshots.restore(state)

        assert list(metadata.image.rules) == [RULE]
        assert authorizer.allows(ALICE, *READING)
