"""The border between short and long values, which compiled codecs handle differently."""

from __future__ import annotations

import itertools

import pytest

from odradek.protocol import codec
from odradek.protocol.cli.explainer import Explainer, ExplanationError
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    ForgottenTopic,
    PartitionData,
)
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.schema import Message, ignorable, nullable, since, tag, until
from odradek.protocol.uvarint import uvarint, uvarint_rest

SIZES = [0, 1, 15, 16, 125, 126, 127, 128, 129, 16_381, 16_382, 16_383, 16_384, 32_767]
COUNTS = [0, 1, 15, 16, 126, 127, 128, 129, 16_382, 16_383, 16_384]


def assert_round_trip(message: Message, version: int) -> None:
    encoded = codec.encode(message, version)
    assert codec.decode_from(type(message), version, encoded) == (message, len(encoded))
    assert Explainer(encoded).message(type(message), version) == message


@pytest.mark.parametrize("version", [4, 9])
@pytest.mark.parametrize("size", SIZES)
def test_strings_of_all_sizes(version: int, size: int) -> None:
    assert_round_trip(MetadataRequest(topics=[MetadataRequestTopic(name="x" * size)] * 2), version)


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize(
    "content", [None, *["x" * size for size in SIZES]], ids=lambda value: str(value and len(value))
)
def test_strings_that_may_be_null(version: int, content: str | None) -> None:
    assert_round_trip(ProduceRequest(transactional_id=content, acks=1), version)


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize("size", [*SIZES, 100_000])
def test_bytes_of_all_sizes(version: int, size: int) -> None:
    assert_round_trip(JoinGroupRequest(protocols=[JoinGroupRequestProtocol(metadata=b"x" * size)] * 2), version)


@pytest.mark.parametrize("version", [7, 12])
@pytest.mark.parametrize("size", [*SIZES, 2_200_000])
def test_records_of_all_sizes(version: int, size: int) -> None:
    partitions = [PartitionData(records=b"x" * size)] * 2
    assert_round_trip(FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)]), version)


@pytest.mark.parametrize("version", [7, 12])
@pytest.mark.parametrize("count", COUNTS)
def test_arrays_of_numbers(version: int, count: int) -> None:
    assert_round_trip(FetchRequest(forgotten_topics_data=[ForgottenTopic(partitions=list(range(count)))] * 2), version)


@pytest.mark.parametrize("replicas", [None, [], [1, 2, 3], [*range(15)], [*range(16)], [*range(200)]])
def test_arrays_of_numbers_that_may_be_null(replicas: list[int] | None) -> None:
    topics = [ReassignableTopic(partitions=[ReassignablePartition(replicas=replicas)] * 2)]
    assert_round_trip(AlterPartitionReassignmentsRequest(topics=topics), 0)


@pytest.mark.parametrize("count", COUNTS)
def test_arrays_of_structures(count: int) -> None:
    assert_round_trip(MetadataRequest(topics=[MetadataRequestTopic(name="t")] * count), 12)


def test_a_string_longer_than_kafka_reads_is_not_written() -> None:
    with pytest.raises(LocalProtocolError, match="32768 bytes"):
        codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32_768)]), 12)


def test_a_string_longer_than_kafka_reads_is_refused() -> None:
    body = b"\x02" + bytes(16) + uvarint(32_769) + b"x" * 32_768 + bytes(4)
    with pytest.raises(RemoteProtocolError, match="name claims length 32768"):
        codec.decode(MetadataRequest, 12, body)
    with pytest.raises(ExplanationError, match="32768 bytes"):
        Explainer(body).message(MetadataRequest, 12)


@pytest.mark.parametrize("length", [b"\x80\x00", b"\x80\x80\x80\x00"])
def test_a_null_in_a_longer_varint_is_a_null(length: bytes) -> None:
    # Java's reader also accepts varints with trailing zeros.
    request = codec.decode(ProduceRequest, 9, length + bytes(6) + b"\x01\x00")
    assert request == ProduceRequest()


@pytest.mark.parametrize("value", [0, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**32 - 1])
def test_varints_at_the_borders_of_their_sizes(value: int) -> None:
    encoded = uvarint(value)
    assert len(encoded) == max(1, (value.bit_length() + 6) // 7)
    if encoded[0] > 127:
        assert uvarint_rest(encoded, 1, encoded[0]) == (value, len(encoded))


def test_the_instance_that_defaults_are_compared_with_is_never_returned() -> None:
    first = PartitionData()
    first.diverging_epoch.epoch = 7
    encoded = codec.encode(FetchResponse(responses=[FetchableTopicResponse(partitions=[first, PartitionData()])]), 12)
    partitions = codec.decode(FetchResponse, 12, encoded).responses[0].partitions
    assert [partition.diverging_epoch.epoch for partition in partitions] == [7, -1]
    partitions[1].diverging_epoch.epoch = 9
    again = codec.decode(FetchResponse, 12, encoded).responses[0].partitions
    assert again[1].diverging_epoch.epoch == -1


def test_markers_of_two_kinds_are_never_equal() -> None:
    markers = [since(1), until(1), tag(1), nullable(1, 1), ignorable]
    assert all(a != b for a, b in itertools.combinations(markers, 2))
