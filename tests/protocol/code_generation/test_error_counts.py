"""The error codes counted in responses of different shapes."""

from __future__ import annotations

from collections import defaultdict

import pytest

from odradek.protocol.api import NAMES, by_key
from odradek.protocol.code_generation.error_counts import error_counter
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import DescribeClusterResponse
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.schema import Message, spec

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NO_COORDINATOR = ErrorCode.COORDINATOR_NOT_AVAILABLE


def counted(response: Message, version: int) -> dict[int, int]:
    counts: defaultdict[int, int] = defaultdict(int)
    error_counter(type(response), version)(response, counts)
    return dict(counts)


def test_the_top_level_error_code_is_counted_also_if_it_is_none() -> None:
    assert counted(DescribeClusterResponse(), 1) == {NONE: 1}
    assert counted(DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE), 1) == {
        ErrorCode.MISMATCHED_ENDPOINT_TYPE: 1
    }


def test_the_errors_of_all_parts_are_counted_at_every_depth() -> None:
    rows = [MetadataResponsePartition(error_code=code) for code in (NONE, NONE, UNKNOWN)]
    topics = [MetadataResponseTopic(partitions=rows), MetadataResponseTopic(error_code=UNKNOWN)]

    assert counted(MetadataResponse(topics=topics), 9) == {NONE: 3, UNKNOWN: 2}


def test_the_errors_of_a_fetch_and_of_its_partitions_are_counted() -> None:
    topics = [FetchableTopicResponse("t", partitions=[PartitionData(0), PartitionData(1, UNKNOWN)])]

    assert counted(FetchResponse(responses=topics), 12) == {NONE: 2, UNKNOWN: 1}


def test_a_code_that_a_version_does_not_have_is_not_counted() -> None:
    coordinators = [Coordinator(error_code=NO_COORDINATOR), Coordinator()]
    response = FindCoordinatorResponse(error_code=NO_COORDINATOR, coordinators=coordinators)

    assert counted(response, 3) == {NO_COORDINATOR: 1}
    assert counted(response, 4) == {NO_COORDINATOR: 1, NONE: 1}


@pytest.mark.parametrize("key", NAMES, ids=NAMES.get)
def test_an_empty_response_of_every_api_and_version_can_be_counted(key: int) -> None:
    api = by_key(key)
    declared = spec(api.response)
    for version in range(declared.first_version, declared.last_version + 1):
        assert set(counted(api.response(), version)) <= {NONE}
