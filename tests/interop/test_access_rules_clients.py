"""Clients that others wrote administer access rules, and get the errors of a missing right as their own exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as PythonResourceType

from odradek.broker.broker import Broker
from odradek.protocol.access_rules import Operation
from tests.handlers.requests import create
from tests.handlers.secured import GROUP, TOPIC, TRANSACTIONAL_ID, allow, secured_broker
from tests.wire import Wire


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with secured_broker() as secured:
        yield secured


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", broker.port, "admin") as connected:
        await create(connected, "t")
        yield connected


def settings(broker: Broker, client_id: str, **others: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap, "client.id": client_id, **others}


async def test_librdkafka_administers_rules(broker: Broker) -> None:
    rule = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )

    def administer() -> None:
        client = AdminClient(settings(broker, "admin"))
        assert client.create_acls([rule])[rule].result(30) is None
        assert client.describe_acls(every).result(30) == [rule]
        assert client.delete_acls([every])[every].result(30) == [rule]
        assert client.describe_acls(every).result(30) == []
        stranger = AdminClient(settings(broker, "alice"))
        with pytest.raises(KafkaException) as refused:
            stranger.create_acls([rule])[rule].result(30)
        assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED

    await asyncio.to_thread(administer)


async def test_kafka_python_administers_rules(broker: Broker) -> None:
    pattern = ResourcePattern(PythonResourceType.TOPIC, "t", ACLResourcePatternType.LITERAL)
    rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
    every = ACLFilter(
        None,
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(PythonResourceType.ANY, None, ACLResourcePatternType.ANY),
    )

    def administer() -> None:
        client = KafkaAdminClient(bootstrap_servers=broker.bootstrap, client_id="admin")
        try:
            created = client.create_acls([rule])
            assert created["succeeded"] == [rule], created
            found, error = client.describe_acls(every)
            assert found == [rule]
            assert error.errno == 0
            [(_, deleted, _)] = client.delete_acls([every])
            assert deleted == [rule]
        finally:
            client.close()

    await asyncio.to_thread(administer)


async def test_librdkafka_reports_refusals(broker: Broker, admin: Wire) -> None:
    def produce() -> list[int]:
        codes: list[int] = []
        producer = Producer(settings(broker, "alice", **{"message.timeout.ms": 10_000}))
        producer.produce("t", b"v", on_delivery=lambda error, _: codes.append(error.code() if error else 0))
        producer.flush(20)
        return codes

    def consume() -> list[int]:
        group = {"group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer(settings(broker, "alice", **group))
        try:
            consumer.subscribe(["t"])
            while (message := consumer.poll(20)) is not None:
                error = message.error()
                return [error.code() if error else 0]
            return []
        finally:
            consumer.close()

    refused = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert await asyncio.to_thread(produce) == refused
    await allow(admin, "alice", (Operation.WRITE, TOPIC, "t"))
    assert await asyncio.to_thread(produce) == [0]

    assert await asyncio.to_thread(consume) == [KafkaError.GROUP_AUTHORIZATION_FAILED]
    await allow(admin, "alice", (Operation.READ, GROUP, "g"))
    assert await asyncio.to_thread(consume) == refused
    await allow(admin, "alice", (Operation.READ, TOPIC, "t"))
    assert await asyncio.to_thread(consume) == [0]


async def test_librdkafka_needs_the_right_to_its_transactional_id(broker: Broker, admin: Wire) -> None:
    await allow(admin, "alice", (Operation.WRITE, TOPIC, "t"))

    def transact() -> int:
        producer = Producer(settings(broker, "alice", **{"transactional.id": "x"}))
        try:
            producer.init_transactions(20)
            producer.begin_transaction()
            producer.produce("t", b"v")
            producer.commit_transaction(20)
        except KafkaException as error:
            code: int = error.args[0].code()
            return code
        return 0

    assert await asyncio.to_thread(transact) == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    await allow(admin, "alice", (Operation.WRITE, TRANSACTIONAL_ID, "x"))
    assert await asyncio.to_thread(transact) == 0


async def test_aiokafka_reports_refusals(broker: Broker, admin: Wire) -> None:
    await allow(admin, "alice", (Operation.DESCRIBE, TOPIC, "t"))
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, client_id="alice", enable_idempotence=False)
    await producer.start()
    try:
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait("t", b"v")
        await allow(admin, "alice", (Operation.WRITE, TOPIC, "t"))
        assert (await producer.send_and_wait("t", b"v")).offset == 0
    finally:
        await producer.stop()

    consumer = AIOKafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap, client_id="bob", group_id="g", auto_offset_reset="earliest"
    )
    await allow(admin, "bob", (Operation.READ, TOPIC, "t"))
    with pytest.raises(GroupAuthorizationFailedError):
        await consumer.start()
    await consumer.stop()
    await allow(admin, "bob", (Operation.READ, GROUP, "g"))
    reader = AIOKafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap, client_id="bob", group_id="g", auto_offset_reset="earliest"
    )
    await reader.start()
    try:
        assert (await reader.getone()).value == b"v"
    finally:
        await reader.stop()
