"""WriteTxnMarkers (API key 27)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i64, i8, ignorable, message, since, string


class WritableTxnMarkerTopic(Structure):
    name: string = ""
    partition_indexes: list[i32] = []


class WritableTxnMarker(Structure):
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    transaction_result: boolean = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: i32 = 0
    transaction_version: Annotated[i8, since(2), ignorable] = 0


@message(key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersRequest(Message):
    """WriteTxnMarkersRequest, versions 1–2, flexible."""

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0


class WritableTxnMarkerTopicResult(Structure):
    name: string = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Structure):
    producer_id: i64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@message(key=27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersResponse(Message):
    """WriteTxnMarkersResponse, versions 1–2, flexible."""

    markers: list[WritableTxnMarkerResult] = []
