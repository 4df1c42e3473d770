"""What a client learns of resources that it has no right to: nothing, not even whether they exist."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.protocol.access_rules import CLUSTER_NAME, Operation
from odradek.protocol.api import by_key
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.schema import ZERO_UUID, Message
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import batch, create
from tests.handlers.rights_cases import CASES, Case, cluster, t
from tests.handlers.secured import (
    CLUSTER,
    FEW_LOGS,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    allow,
    coordinate,
    deny,
    error_codes,
    revoke,
    secure,
)
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN_ID = bytes(range(16))


@pytest.fixture
async def admin(secured: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", secured.port, "admin") as connected:
        await coordinate(connected)
        yield connected


def with_name(case: Case, name: str) -> Message:
    """The request of a case for another topic."""
    text = msgspec.json.encode(msgspec.to_builtins(case.request)).replace(b'"t"', b'"%b"' % name.encode())
    return msgspec.json.decode(text, type=by_key(case.key).request)


ON_TOPICS = [case for case in CASES if case.key not in (0, 1) and {right[1] for right in case.rights} == {TOPIC}]


@pytest.mark.parametrize(
    "case", [case for case in ON_TOPICS if '"t"' in str(msgspec.json.encode(case.request))], ids=str
)
async def test_a_refusal_does_not_tell_whether_a_topic_exists(admin: Wire, alice: Wire, case: Case) -> None:
    await create(admin, "t")
    there = await alice.ask(case.request, case.version)
    missing = await alice.ask(with_name(case, "u"), case.version)
    text = msgspec.json.encode(msgspec.to_builtins(missing)).replace(b'"u"', b'"t"')
    assert text == msgspec.json.encode(msgspec.to_builtins(there))


async def test_metadata_lists_what_the_client_may_describe(admin: Wire, alice: Wire) -> None:
    for name in ("a", "b", "c"):
        await create(admin, name)
    await allow(admin, "alice", (Operation.READ, TOPIC, "b"))

    for version, request in ((0, MetadataRequest([])), (1, MetadataRequest(None)), (12, MetadataRequest(None))):
        response = await alice.ask(request, version)
        assert [topic.name for topic in response.topics] == ["b"]
    every = await admin.ask(MetadataRequest(None), 12)
    assert {"a", "b", "c"} <= {topic.name for topic in every.topics}


async def test_metadata_creates_nothing_for_who_may_not(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (Operation.DESCRIBE, TOPIC, "described"))
    wanted = [MetadataRequestTopic(name=name) for name in ("described", "hidden")]

    response = await alice.ask(MetadataRequest(wanted, allow_auto_topic_creation=True), 9)

    assert {topic.name: topic.error_code for topic in response.topics} == {"described": REFUSED, "hidden": REFUSED}
    listed = await admin.ask(MetadataRequest(None), 9)
    assert not {"described", "hidden"} & {topic.name for topic in listed.topics}


async def test_an_id_is_unknown_to_who_may_not_describe_its_topic(admin: Wire, alice: Wire) -> None:
    topic_id = await create(admin, "t")

    async def codes(wanted: bytes) -> list[list[ErrorCode]]:
        data = TopicProduceData("", wanted, [PartitionProduceData(0, batch(b"v"))])
        group = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("", wanted, [0])])
        committed = OffsetCommitRequestTopic("", wanted, [OffsetCommitRequestPartition(0, 5)])
        requests: list[tuple[Message, int]] = [
            (MetadataRequest([MetadataRequestTopic(wanted, None)]), 12),
            (ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 13),
            (FetchRequest(topics=[FetchTopic("", wanted, [FetchPartition(0, partition_max_bytes=1000)])]), 13),
            (DeleteTopicsRequest([DeleteTopicState(None, wanted)], timeout_ms=1000), 6),
            (OffsetFetchRequest(groups=[group]), 10),
            (OffsetCommitRequest("g", topics=[committed]), 10),
        ]
        return [sorted(set(error_codes(await alice.ask(*request))) - {ErrorCode.NONE}) for request in requests]

    await allow(admin, "alice", (Operation.READ, GROUP, "g"))
    assert await codes(UNKNOWN_ID) == await codes(topic_id) == [[ErrorCode.UNKNOWN_TOPIC_ID]] * 6

    await allow(admin, "alice", (Operation.DESCRIBE, TOPIC, "t"))
    assert await codes(topic_id) == [[], [REFUSED], [REFUSED], [REFUSED], [], [REFUSED]]


async def test_a_deletion_by_name_and_id_does_not_tell_that_they_belong_together(admin: Wire, alice: Wire) -> None:
    topic_id = await create(admin, "t")
    for wanted in (topic_id, UNKNOWN_ID):
        request = DeleteTopicsRequest([DeleteTopicState("t"), DeleteTopicState(None, wanted)], timeout_ms=1000)
        rows = (await alice.ask(request, 6)).responses
        assert [(row.name, row.topic_id, row.error_code) for row in rows] == [
            ("t", ZERO_UUID, REFUSED),
            (None, wanted, ErrorCode.UNKNOWN_TOPIC_ID),
        ]


async def test_pages_of_topics_omit_hidden_ones(admin: Wire, alice: Wire) -> None:
    for name in ("a", "b", "c", "d"):
        await create(admin, name)
    for name in ("a", "d"):
        await allow(admin, "alice", (Operation.DESCRIBE, TOPIC, name))

    first = await alice.ask(DescribeTopicPartitionsRequest([], 1), 0)
    assert ([topic.name for topic in first.topics], first.next_cursor) == (["a"], Cursor("d", 0))
    last = await alice.ask(DescribeTopicPartitionsRequest([], 1, first.next_cursor), 0)
    assert ([topic.name for topic in last.topics], last.next_cursor) == (["d"], None)


async def test_groups_are_listed_and_described_for_who_may(admin: Wire, alice: Wire) -> None:
    for group_id in ("g", "h"):
        await GroupMember(admin, group_id, "instance").become_only_member()
    await allow(admin, "alice", (Operation.READ, GROUP, "g"))

    listed = await alice.ask(ListGroupsRequest(), 4)
    described = await alice.ask(DescribeGroupsRequest(["g", "h", "none"]), 5)

    assert [row.group_id for row in listed.groups] == ["g"]
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert [row.error_code for row in described.groups] == [ErrorCode.NONE, refused, refused]
    assert [row.group_state for row in described.groups] == ["Stable", "", ""]
    await allow(admin, "alice", cluster(Operation.DESCRIBE))
    assert len((await alice.ask(ListGroupsRequest(), 4)).groups) == 2


async def test_offsets_are_fetched_of_visible_topics(admin: Wire, alice: Wire) -> None:
    for name in ("t", "u"):
        await create(admin, name)
    committed = [OffsetCommitRequestTopic(name, ZERO_UUID, [OffsetCommitRequestPartition(0, 5)]) for name in ("t", "u")]
    assert set(error_codes(await admin.ask(OffsetCommitRequest("g", topics=committed), 9))) == {ErrorCode.NONE}
    await allow(admin, "alice", (Operation.DESCRIBE, GROUP, "g"), t(Operation.DESCRIBE))

    every = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    named = [OffsetFetchRequestTopics(name, ZERO_UUID, [0]) for name in ("t", "u")]
    [found] = (await alice.ask(every, 8)).groups
    [asked] = (await alice.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=named)]), 8)).groups

    assert [topic.name for topic in found.topics] == ["t"]
    assert [topic.partitions[0].error_code for topic in asked.topics] == [ErrorCode.NONE, REFUSED]


async def test_a_commit_stores_the_topics_that_the_client_may_read(admin: Wire, alice: Wire) -> None:
    for name in ("t", "u"):
        await create(admin, name)
    await allow(admin, "alice", (Operation.READ, GROUP, "g"), t(Operation.READ))
    committed = [OffsetCommitRequestTopic(name, ZERO_UUID, [OffsetCommitRequestPartition(0, 5)]) for name in ("t", "u")]

    response = await alice.ask(OffsetCommitRequest("g", topics=committed), 9)

    assert [topic.partitions[0].error_code for topic in response.topics] == [ErrorCode.NONE, REFUSED]
    every = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    assert [topic.name for topic in (await admin.ask(every, 8)).groups[0].topics] == ["t"]


async def test_transactions_are_listed_and_described_for_who_may(admin: Wire, alice: Wire) -> None:
    for name in ("t", "u"):
        await create(admin, name)
    for transactional_id in ("x", "y"):
        producer = TransactionalProducer(admin, transactional_id)
        await producer.start()
        await producer.add({"t": [0], "u": [0]})
    await allow(admin, "alice", (Operation.WRITE, TRANSACTIONAL_ID, "x"), t(Operation.DESCRIBE))

    listed = await alice.ask(ListTransactionsRequest(), 1)
    described = (await alice.ask(DescribeTransactionsRequest(["x", "y", "none"]), 0)).transaction_states

    assert [row.transactional_id for row in listed.transaction_states] == ["x"]
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [row.error_code for row in described] == [ErrorCode.NONE, refused, refused]
    assert [topic.topic for topic in described[0].topics] == ["t"]


async def test_authorized_operations_are_those_that_the_rules_allow(admin: Wire, alice: Wire) -> None:
    await create(admin, "t")
    await allow(
        admin,
        "alice",
        t(Operation.READ),
        t(Operation.ALTER_CONFIGS),
        (Operation.ALL, GROUP, "g"),
        (Operation.DESCRIBE, CLUSTER, CLUSTER_NAME),
        (Operation.CREATE, CLUSTER, CLUSTER_NAME),
    )
    await deny(admin, "alice", (Operation.DELETE, GROUP, "g"))

    request = MetadataRequest([MetadataRequestTopic(name="t")], False, True, True)
    metadata = await alice.ask(request, 9)
    [paged] = (await alice.ask(DescribeTopicPartitionsRequest([TopicRequest("t")]), 0)).topics
    [group] = (await alice.ask(DescribeGroupsRequest(["g"], include_authorized_operations=True), 4)).groups
    on_cluster = await alice.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 0)

    on_topic = _bits(Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
    assert metadata.topics[0].topic_authorized_operations == paged.topic_authorized_operations == on_topic
    assert metadata.cluster_authorized_operations == on_cluster.cluster_authorized_operations
    assert on_cluster.cluster_authorized_operations == _bits(Operation.DESCRIBE, Operation.CREATE)
    configs = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
    assert group.authorized_operations == _bits(Operation.READ, Operation.DESCRIBE, *configs)


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


async def test_without_describe_there_are_no_operations_on_the_cluster(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (Operation.CREATE, CLUSTER, CLUSTER_NAME))
    response = await alice.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    assert (response.cluster_authorized_operations, len(response.brokers)) == (0, 1)


async def test_a_created_topic_shows_its_configs_to_who_may_see_them(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (Operation.CREATE, TOPIC, "t"), (Operation.CREATE, TOPIC, "u"))
    await allow(admin, "alice", (Operation.DESCRIBE_CONFIGS, TOPIC, "u"))

    hidden, shown = (await alice.ask(CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in "tu"]), 7)).topics

    assert (hidden.error_code, hidden.topic_config_error_code, hidden.configs) == (ErrorCode.NONE, REFUSED, None)
    assert (hidden.num_partitions, hidden.replication_factor) == (-1, -1)
    assert (shown.topic_config_error_code, shown.num_partitions) == (ErrorCode.NONE, 1)
    assert shown.configs


def _heartbeat(epoch: int = 0, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest("g", "m", epoch, rebalance_timeout_ms=5000, topic_partitions=[], **fields)


async def test_a_pattern_matches_topics_that_the_client_may_describe(admin: Wire, alice: Wire) -> None:
    for name in ("t-1", "t-2", "t-3"):
        await create(admin, name)
    await allow(admin, "alice", (Operation.READ, GROUP, "g"), *(t(Operation.READ, name) for name in ("t-1", "t-3")))

    joined = await alice.ask(_heartbeat(subscribed_topic_regex="t-.*"), 1)
    assert joined.error_code == ErrorCode.NONE
    while True:
        [group] = (await admin.ask(ConsumerGroupDescribeRequest(["g"]), 1)).groups
        [member] = group.members
        assigned = {each.topic_name for each in member.target_assignment.topic_partitions}
        if assigned:
            break
        await alice.ask(ConsumerGroupHeartbeatRequest("g", "m", joined.member_epoch), 1)
    assert assigned == {"t-1", "t-3"}


async def test_a_group_with_a_hidden_topic_is_not_described(admin: Wire, alice: Wire) -> None:
    await create(admin, "t")
    await admin.ask(_heartbeat(subscribed_topic_names=["t"]), 1)
    await allow(admin, "alice", (Operation.DESCRIBE, GROUP, "g"))

    [hidden] = (await alice.ask(ConsumerGroupDescribeRequest(["g"]), 1)).groups
    await allow(admin, "alice", t(Operation.DESCRIBE))
    [shown] = (await alice.ask(ConsumerGroupDescribeRequest(["g"]), 1)).groups

    assert (hidden.error_code, hidden.members) == (REFUSED, [])
    assert (shown.error_code, len(shown.members)) == (ErrorCode.NONE, 1)


async def test_the_rules_of_a_deleted_topic_stay(admin: Wire, alice: Wire) -> None:
    await create(admin, "t")
    await allow(admin, "alice", t(Operation.DESCRIBE))
    await admin.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
    assert [topic.error_code for topic in (await alice.ask(_named("t"), 9)).topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    await create(admin, "t")
    assert [topic.error_code for topic in (await alice.ask(_named("t"), 9)).topics] == [ErrorCode.NONE]
    await revoke(admin, "alice")
    assert [topic.error_code for topic in (await alice.ask(_named("t"), 9)).topics] == [REFUSED]


def _named(name: str) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


async def test_a_resource_without_rules_is_open_if_the_property_says_so() -> None:
    broker = Broker(FEW_LOGS)
    secure(broker, allow_everyone=True)
    async with broker, Wire("127.0.0.1", broker.port, "admin") as admin, Wire("127.0.0.1", broker.port, "bob") as bob:
        await create(bob, "t")
        await create(bob, "u")
        await allow(admin, "alice", t(Operation.READ))
        assert [topic.name for topic in (await bob.ask(MetadataRequest(None), 9)).topics] == ["u"]
