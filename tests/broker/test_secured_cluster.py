"""Brokers that log in to each other, and are refused if they cannot."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.broker.metadata.administration.access_rules import create_rules
from odradek.broker.security.access.rule import AccessRule
from odradek.protocol.access_rules import CLUSTER_NAME, Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.errors import ErrorCode
from tests.broker.replicating import three_brokers

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.inside.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.inside.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required username="broker" password="b" user_broker="b";'
    ),
}


async def test_records_are_replicated_by_brokers_that_log_in(tmp_path: Path) -> None:
    async with three_brokers(tmp_path, **LISTENERS) as cluster:
        await cluster.create()
        assert await cluster.produce(cluster.leader(), b"a", b"b") is ErrorCode.NONE
        await cluster.until(lambda: cluster.in_sync(1, 2, 3))
        inside = [
            str(connection.context.principal)
            for broker in cluster.brokers.values()
            for connection in broker.connections
            if connection.context.listener_name == "INSIDE"
        ]
        assert inside
        assert set(inside) == {"User:broker"}


async def test_a_broker_needs_the_right_to_follow(tmp_path: Path) -> None:
    rules = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    may_follow = AccessRule(
        ResourceType.CLUSTER,
        PatternType.LITERAL,
        CLUSTER_NAME,
        "User:broker",
        "*",
        Operation.CLUSTER_ACTION,
        PermissionType.ALLOW,
    )
    async with three_brokers(tmp_path, **LISTENERS, **rules) as cluster:
        await cluster.create()
        await cluster.until(lambda: cluster.in_sync(cluster.leader()))
        await create_rules(cluster.brokers[1].services.metadata, [may_follow])
        await cluster.until(lambda: cluster.in_sync(1, 2, 3))
