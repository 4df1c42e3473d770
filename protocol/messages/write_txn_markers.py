"""WriteTxnMarkers (API key 27): a transaction coordinator has leaders write commit or abort markers (KIP-98).

One request to a leader holds the markers of several transactions.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, i64, ignorable, message, since, string


class WritableTxnMarkerTopic(Structure):
    name: string = ""
    partition_indexes: list[i32] = []


class WritableTxnMarker(Structure):
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    transaction_result: boolean = False  # True commits, False aborts
    topics: list[WritableTxnMarkerTopic] = []
    # Leader epoch of the coordinator's partition of `__transaction_state`: an older one is fenced.
    coordinator_epoch: i32 = 0
    # With 2 the marker's epoch must be above that of the records, with 0 and 1 at least equal.
    transaction_version: Annotated[i8, since(2), ignorable] = 0


@message(key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersRequest(Message):
    """Versions 1–2, flexible.

    Kafka 4.0 dropped v0 (KIP-896). v2 adds the version of the transaction protocol, for a stricter check of the epoch
    (KIP-1228).
    """

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0  # after NOT_LEADER_OR_FOLLOWER (6) and similar the coordinator sends it to the new leader


class WritableTxnMarkerTopicResult(Structure):
    name: string = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Structure):
    producer_id: i64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@message(key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersResponse(Message):
    """Versions 1–2, flexible, with the same fields."""

    markers: list[WritableTxnMarkerResult] = []
