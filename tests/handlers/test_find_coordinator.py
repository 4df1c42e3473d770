from __future__ import annotations

import asyncio

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.handlers.busy_threads import busy_disk_threads
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire


@pytest.mark.parametrize("version", range(4))
@pytest.mark.usefixtures("only_here")  # Apache Kafka creates the topic of groups meanwhile
async def test_the_first_request_returns_the_coordinator(wire: Wire, version: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(key="g"), version)

    assert (response.error_code, response.node_id) == (ErrorCode.NONE, 1)
    assert (response.host, response.port) == (wire.host, wire.port)
    assert response.error_message == ("NONE" if version else "")


@pytest.mark.parametrize("version", range(4, 7))
@pytest.mark.usefixtures("only_here")
async def test_several_groups_are_found_at_once(wire: Wire, version: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(coordinator_keys=["a", "b", ""]), version)

    found = [(each.key, each.error_code, each.error_message, each.node_id) for each in response.coordinators]
    assert found == [(key, ErrorCode.NONE, "", 1) for key in ("a", "b", "")]


@pytest.mark.usefixtures("only_here")  # Apache Kafka answers before groups can be coordinated
async def test_the_returned_coordinator_serves_the_group(broker: Broker, wire: Wire) -> None:
    async with Wire(wire.host, wire.port) as first, Wire(wire.host, wire.port) as second:
        async with busy_disk_threads(broker):
            asking = [asyncio.create_task(first.ask(FindCoordinatorRequest(key="g"), 3))]
            while not any(topic.is_internal for topic in (await wire.ask(MetadataRequest(None), 9)).topics):
                pass
            asking.append(asyncio.create_task(second.ask(FindCoordinatorRequest(key="g"), 3)))
            for _ in range(10):
                await wire.ask(MetadataRequest(None), 9)
            too_early = [task for task in asking if task.done()]  # the partitions have no logs yet
        await asyncio.gather(*asking)
    assert too_early == []

    [group] = (await wire.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)]), 8)).groups
    assert group.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_one_transactional_id_has_a_coordinator(wire: Wire, version: int) -> None:
    await TransactionalProducer(wire).find_coordinator()

    response = await wire.ask(FindCoordinatorRequest(key="t", key_type=1), version)

    assert (response.error_code, response.node_id) == (ErrorCode.NONE, 1)
    assert (response.host, response.port) == (wire.host, wire.port)


@pytest.mark.parametrize("version", range(4, 7))
async def test_several_transactional_ids_have_coordinators(wire: Wire, version: int) -> None:
    await TransactionalProducer(wire).find_coordinator()

    response = await wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t", "", "u"]), version)

    assert [(row.key, row.error_code, row.node_id, row.port) for row in response.coordinators] == [
        (key, ErrorCode.NONE, 1, wire.port) for key in ("t", "", "u")
    ]


@pytest.mark.usefixtures("only_here")
async def test_share_groups_have_no_coordinators(wire: Wire) -> None:
    response = await wire.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=["t", "u"]), 6)

    assert [(row.key, row.error_code, row.node_id) for row in response.coordinators] == [
        ("t", ErrorCode.UNSUPPORTED_VERSION, -1),
        ("u", ErrorCode.UNSUPPORTED_VERSION, -1),
    ]
    assert all("yet" in row.error_message for row in response.coordinators)


@pytest.mark.usefixtures("only_here")  # the one in these tests is set up with other properties
async def test_the_topic_of_transactions_is_compacted_and_internal(broker: Broker, wire: Wire) -> None:
    await wire.ask(FindCoordinatorRequest(key="t", key_type=1), 3)

    [topic] = (await wire.ask(MetadataRequest([MetadataRequestTopic(name="__transaction_state")]), 9)).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 3)
    assert broker.services.metadata.image.topics["__transaction_state"].configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",  # as many as there are replicas
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.usefixtures("only_here")  # the one in these tests is set up with other properties
async def test_the_topic_of_groups_is_compacted_and_internal(broker: Broker, wire: Wire) -> None:
    await wire.ask(FindCoordinatorRequest(key="g"), 3)

    [topic] = (await wire.ask(MetadataRequest([MetadataRequestTopic(name="__consumer_offsets")]), 9)).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 3)
    configs = broker.services.metadata.image.topics["__consumer_offsets"].configs
    assert configs == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}


@pytest.mark.parametrize("version", [1, 3])
async def test_an_unknown_key_type_is_refused(wire: Wire, version: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(key="g", key_type=9), version)

    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(4, 7))
@pytest.mark.parametrize("key_type", [0, 1, 2, 9])
async def test_no_keys_of_any_type_are_an_empty_list(wire: Wire, version: int, key_type: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[]), version)

    assert (response.error_code, response.coordinators) == (ErrorCode.NONE, [])
