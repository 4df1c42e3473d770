"""TxnOffsetCommit in a group: who may commit (KIP-447), and the bytes of the batch. What is expected is Kafka's."""

from __future__ import annotations

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.members import Member
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.group_coordinator import consumer_offsets_topic
from odradek.broker.coordinator.group_type import Committer, Group
from odradek.broker.coordinator.offsets.committed_offsets import NO_EXPIRY, CommittedOffsets
from odradek.broker.coordinator.offsets.events import CommitOffsetsInTransaction, OffsetContext
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.events import Effects, PendingReply, ProducerIdAndEpoch
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import TopicPartitions
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.protocol.schema import ZERO_UUID
from tests.coordinator.consumer_group.transcript import Group as ConsumerGroupTranscript

PRODUCER = ProducerIdAndEpoch(0, 1)
OUTSIDE = ("", None, -1)
NONE = ErrorCode.NONE
ILLEGAL_GENERATION = ErrorCode.ILLEGAL_GENERATION
UNKNOWN_MEMBER_ID = ErrorCode.UNKNOWN_MEMBER_ID
FENCED_INSTANCE_ID = ErrorCode.FENCED_INSTANCE_ID

KAFKAS_BATCH = bytes.fromhex(
    "0000000000000009000000b50000000002fffc73d5001000000002000001a208cb371c000001a208cb371c00000000000000000001000000"
    "000000000356000000180001000168000174000000003200040000000000000007ffffffff026d000001a208cb371c000056000002180001"
    "000168000174000000013200040000000000000008ffffffff026d000001a208cb371c000056000004180001000168000174000000003200"
    "040000000000000009ffffffff026e000001a208cb371c0000"
)
"""What Apache Kafka 4.3.1 wrote of a TxnOffsetCommit with two offsets of partition 0 and one of partition 1."""
AT_MS = 1795443865372


def effects_of(
    group: Group | None, committer: tuple[str, str | None, int], *offsets: tuple[int, int, str], topic: str = "t"
) -> Effects:
    """Return the effects of a commit of these partitions, offsets and metadata."""
    member_id, instance_id, generation = committer
    commits = [
        (topic, index, CommittedOffset(offset, -1, metadata, AT_MS, NO_EXPIRY, ZERO_UUID, -1))
        for index, offset, metadata in offsets
    ]
    rows = [TxnOffsetCommitResponsePartition(index) for index, _, _ in offsets]
    rows.append(TxnOffsetCommitResponsePartition(98, ErrorCode.OFFSET_METADATA_TOO_LARGE))
    rows.append(TxnOffsetCommitResponsePartition(99, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    event = CommitOffsetsInTransaction(
        PendingReply(),
        Committer(member_id, instance_id, generation, 3, is_transactional=True),
        commits,
        TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(topic, rows)]),
        PRODUCER,
    )
    return event.effects(OffsetContext("h", group, CommittedOffsets(), AT_MS))


def outcome(group: Group | None, committer: tuple[str, str | None, int], topic: str = "t") -> ErrorCode:
    """Return the error of the partition that exists; check the other rows, and that only a success has records."""
    effects = effects_of(group, committer, (0, 7, ""), topic=topic)
    [(_, reply)] = effects.replies
    assert isinstance(reply, TxnOffsetCommitResponse)
    code, too_large, unknown = [ErrorCode(row.error_code) for row in reply.topics[0].partitions]
    assert too_large is (ErrorCode.OFFSET_METADATA_TOO_LARGE if code is NONE else code)
    assert unknown is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bool(effects.records) == (code is NONE)
    assert effects.producer == (PRODUCER if code is NONE else None)
    assert not effects.timers
    return code


def classic_group(*members: Member) -> ClassicGroup:
    """A stable group in generation 3; without members an empty one."""
    group = ClassicGroup("h", ClassicSettings(), AT_MS)
    if members:
        group.take_over(members, 3)
    return group


def a_member(member_id: str, instance_id: str | None = None) -> Member:
    subscription = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
    return Member(member_id, instance_id, "c", "/h", 60_000, 30_000, (("range", subscription),))


def test_the_batch_is_that_of_kafka_in_every_byte() -> None:
    effects = effects_of(None, OUTSIDE, (0, 7, "m"), (1, 8, "m"), (0, 9, "n"))
    topic = consumer_offsets_topic(BrokerConfig.load(overrides={"log.dirs": "unused"}))

    batch = topic.build_batch(effects.records, AT_MS, effects.producer)

    assert batch[8:12] == KAFKAS_BATCH[8:12]
    assert batch[16:] == KAFKAS_BATCH[16:]  # all but the offset and the leader epoch, which an append writes


@pytest.mark.parametrize(
    ("committer", "code"),
    [(OUTSIDE, NONE), (("", None, 0), ILLEGAL_GENERATION), (("m", None, 3), ILLEGAL_GENERATION)],
)
def test_a_group_that_does_not_exist(committer: tuple[str, str | None, int], code: ErrorCode) -> None:
    assert outcome(None, committer) is code


@pytest.mark.parametrize(
    ("committer", "code"),
    [(OUTSIDE, NONE), (("m", None, -1), NONE), (("m", None, 3), UNKNOWN_MEMBER_ID)],
)
def test_a_classic_group_without_members(committer: tuple[str, str | None, int], code: ErrorCode) -> None:
    assert outcome(classic_group(), committer) is code


@pytest.mark.parametrize(
    ("committer", "code"),
    [
        (OUTSIDE, NONE),
        (("m", None, 3), NONE),
        (("m", None, 2), ILLEGAL_GENERATION),
        (("m", None, 4), ILLEGAL_GENERATION),
        (("m", None, -1), ILLEGAL_GENERATION),
        (("", None, 3), UNKNOWN_MEMBER_ID),
        (("x", None, 3), UNKNOWN_MEMBER_ID),
        (("s", "static", 3), NONE),
        (("x", "static", 3), FENCED_INSTANCE_ID),
        (("s", "unknown", 3), UNKNOWN_MEMBER_ID),
        (("", "static", -1), FENCED_INSTANCE_ID),
    ],
)
def test_a_classic_group_with_members(committer: tuple[str, str | None, int], code: ErrorCode) -> None:
    assert outcome(classic_group(a_member("m"), a_member("s", "static")), committer) is code


@pytest.mark.parametrize(
    ("committer", "topic", "code"),
    [
        (OUTSIDE, "a", NONE),
        (("m1", None, 4), "a", NONE),
        (("m1", None, 2), "a", NONE),
        (("m1", None, 2), "b", ILLEGAL_GENERATION),
        (("m1", None, 5), "a", ILLEGAL_GENERATION),
        (("x", None, 4), "a", UNKNOWN_MEMBER_ID),
        (("", None, 4), "a", UNKNOWN_MEMBER_ID),
    ],
)
def test_a_consumer_group(committer: tuple[str, str | None, int], topic: str, code: ErrorCode) -> None:
    """Member m1 is in epoch 4; it has had a-0 since epoch 2, b-0 since epoch 4."""
    transcript = ConsumerGroupTranscript()
    transcript.set_topics({"a": 2, "b": 1})
    transcript.settings = type(transcript.settings)(assignment_interval_ms=0)
    transcript.heartbeat("m1", 0, rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["a"])
    transcript.heartbeat("m2", 0, rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["a"])
    transcript.heartbeat("m1", 2, subscribed_topic_names=["a", "b"])
    transcript.heartbeat("m1", 2, topic_partitions=[TopicPartitions(transcript.topic_id("a"), [0])])

    assert outcome(transcript.group, committer, topic) is code
