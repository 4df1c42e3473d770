"""The record types of internal topics, with the messages of key and value; the key begins with the type."""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.schema import Message
from odradek.protocol.stored_records import consumer_group, group_metadata, offset_commit, share_group, streams_group
from odradek.protocol.stored_records.transaction_log import TransactionLogKey, TransactionLogValue


class StoredRecord(NamedTuple):
    """The two messages of a record type."""

    key: type[Message]
    value: type[Message]


GROUP_RECORDS: dict[int, StoredRecord] = {
    0: StoredRecord(offset_commit.LegacyOffsetCommitKey, offset_commit.LegacyOffsetCommitValue),
    1: StoredRecord(offset_commit.OffsetCommitKey, offset_commit.OffsetCommitValue),
    2: StoredRecord(group_metadata.GroupMetadataKey, group_metadata.GroupMetadataValue),
    3: StoredRecord(consumer_group.ConsumerGroupMetadataKey, consumer_group.ConsumerGroupMetadataValue),
    4: StoredRecord(
        consumer_group.ConsumerGroupPartitionMetadataKey, consumer_group.ConsumerGroupPartitionMetadataValue
    ),
    5: StoredRecord(consumer_group.ConsumerGroupMemberMetadataKey, consumer_group.ConsumerGroupMemberMetadataValue),
    6: StoredRecord(
        consumer_group.ConsumerGroupTargetAssignmentMetadataKey,
        consumer_group.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    7: StoredRecord(
        consumer_group.ConsumerGroupTargetAssignmentMemberKey, consumer_group.ConsumerGroupTargetAssignmentMemberValue
    ),
    8: StoredRecord(
        consumer_group.ConsumerGroupCurrentMemberAssignmentKey, consumer_group.ConsumerGroupCurrentMemberAssignmentValue
    ),
    10: StoredRecord(share_group.ShareGroupMemberMetadataKey, share_group.ShareGroupMemberMetadataValue),
    11: StoredRecord(share_group.ShareGroupMetadataKey, share_group.ShareGroupMetadataValue),
    12: StoredRecord(
        share_group.ShareGroupTargetAssignmentMetadataKey, share_group.ShareGroupTargetAssignmentMetadataValue
    ),
    13: StoredRecord(
        share_group.ShareGroupTargetAssignmentMemberKey, share_group.ShareGroupTargetAssignmentMemberValue
    ),
    14: StoredRecord(
        share_group.ShareGroupCurrentMemberAssignmentKey, share_group.ShareGroupCurrentMemberAssignmentValue
    ),
    15: StoredRecord(
        share_group.ShareGroupStatePartitionMetadataKey, share_group.ShareGroupStatePartitionMetadataValue
    ),
    16: StoredRecord(
        consumer_group.ConsumerGroupRegularExpressionKey, consumer_group.ConsumerGroupRegularExpressionValue
    ),
    17: StoredRecord(streams_group.StreamsGroupMetadataKey, streams_group.StreamsGroupMetadataValue),
    19: StoredRecord(streams_group.StreamsGroupMemberMetadataKey, streams_group.StreamsGroupMemberMetadataValue),
    20: StoredRecord(
        streams_group.StreamsGroupTargetAssignmentMetadataKey, streams_group.StreamsGroupTargetAssignmentMetadataValue
    ),
    21: StoredRecord(
        streams_group.StreamsGroupTargetAssignmentMemberKey, streams_group.StreamsGroupTargetAssignmentMemberValue
    ),
    22: StoredRecord(
        streams_group.StreamsGroupCurrentMemberAssignmentKey, streams_group.StreamsGroupCurrentMemberAssignmentValue
    ),
    23: StoredRecord(streams_group.StreamsGroupTopologyKey, streams_group.StreamsGroupTopologyValue),
}
"""Records of `__consumer_offsets`. There are no types 9 and 18."""

TRANSACTION_RECORDS: dict[int, StoredRecord] = {0: StoredRecord(TransactionLogKey, TransactionLogValue)}
"""Records of `__transaction_state`."""
