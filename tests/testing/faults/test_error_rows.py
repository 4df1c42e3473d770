from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.apis.table import ROWS, HandlerTable
from odradek.broker.testing.faults.error_rows import DETAIL, carries, replaced, split, with_error_everywhere, with_rows
from odradek.broker.testing.faults.topic_rows import Named, topics_of
from odradek.protocol.api import NAMES, by_key, by_name
from odradek.protocol.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.schema import Message
from tests.testing.faults.examples import filled, naming

WITH_PARTITION_ERRORS = {
    "Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "DeleteRecords",
    "OffsetForLeaderEpoch", "AddPartitionsToTxn", "WriteTxnMarkers", "TxnOffsetCommit", "AlterReplicaLogDirs",
    "ElectLeaders", "AlterPartitionReassignments", "OffsetDelete", "DescribeProducers", "DescribeTopicPartitions",
}  # fmt: skip
WITH_TOPIC_ERRORS = {
    "Metadata", "CreateTopics", "DeleteTopics", "DescribeConfigs", "AlterConfigs", "CreatePartitions",
    "IncrementalAlterConfigs", "DescribeTopicPartitions",
}  # fmt: skip

IDS = {"t": b"t" * 16, "u": b"u" * 16}
BY_ID = {topic_id: topic for topic, topic_id in IDS.items()}
CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER
HANDLERS = HandlerTable()

CASES = [
    (NAMES[key], version)
    for key, row in ROWS.items()
    if NAMES[key] in WITH_PARTITION_ERRORS | WITH_TOPIC_ERRORS
    for version in range(row.min_version, row.max_version + 1)
]
CHANGING = [(name, version) for name, version in CASES if not ROWS[by_name(name).key].only_reads]


def fails_in_t(topic: str, index: int | None) -> ErrorCode | None:
    return CODE if topic == "t" and index in (None, 1) else None


def errors_in(answer: Any, version: int) -> dict[Named, int]:
    """The error code of each topic and partition of an answer."""
    cls: type[Message] = type(answer)
    topics = topics_of(cls, version)
    assert topics is not None
    found = {}
    for parent in topics.parents(answer):
        for row in getattr(parent, topics.array):
            topic = topics.topic_of(row, BY_ID.get)
            assert topic is not None
            if topics.error is not None:
                found[Named(topic, None)] = getattr(row, topics.error)
            if topics.partitions is not None:
                assert topics.partition_error is not None
                for each in getattr(row, topics.partitions):
                    found[Named(topic, topics.number_of(each))] = getattr(each, topics.partition_error)
    return found


def encoded_and_decoded(answer: Any, version: int) -> Any:
    return decode(type(answer), version, encode(answer, version))


@pytest.mark.parametrize("key", ROWS)
def test_the_schema_shows_which_answers_have_errors_of_partitions_and_topics(key: int) -> None:
    api, row = by_key(key), ROWS[key]
    found = [topics_of(api.response, version) for version in range(row.min_version, row.max_version + 1)]

    assert any(each and each.partition_error for each in found) == (api.name in WITH_PARTITION_ERRORS)
    assert any(each and each.error for each in found) == (api.name in WITH_TOPIC_ERRORS)


@pytest.mark.parametrize(("name", "version"), CASES)
def test_a_request_names_the_partitions_that_its_answer_has(name: str, version: int) -> None:
    api = by_name(name)
    topics = topics_of(api.request, version)
    assert topics is not None
    request = naming(api.request, version, {"t": [0, 1], "u": [0]}, IDS)
    indexes = {"t": [0, 1], "u": [0]} if topics.partitions else {"t": [None], "u": [None]}

    named = list(topics.named(encoded_and_decoded(request, version), BY_ID.get))

    assert named == [Named(topic, index) for topic in indexes for index in indexes[topic]]
    assert not topics.are_all(request)


@pytest.mark.parametrize(("name", "version"), CASES)
def test_replaced_rows_have_the_error_and_the_others_stay(name: str, version: int) -> None:
    api = by_name(name)
    topics = topics_of(api.response, version)
    assert topics is not None
    answer = naming(api.response, version, {"t": [0, 1], "u": [1]}, IDS)
    before = errors_in(answer, version)

    changed, done = replaced(answer, version, topics, BY_ID.get, fails_in_t)

    if topics.error is not None:  # the topic as a whole fails, and has no partitions then
        assert done == [("t", None)]
        assert errors_in(encoded_and_decoded(changed, version), version)[Named("t", None)] == CODE
    else:
        assert done == [("t", 1)]
        assert errors_in(encoded_and_decoded(changed, version), version) == {**before, Named("t", 1): CODE}
    assert errors_in(answer, version) == before


@pytest.mark.parametrize(("name", "version"), CHANGING)
def test_a_split_request_and_the_added_rows_are_the_whole_request(name: str, version: int) -> None:
    api = by_name(name)
    topics, answers = topics_of(api.request, version), topics_of(api.response, version)
    assert topics is not None
    assert answers is not None
    request = naming(api.request, version, {"t": [0, 1], "u": [1]}, IDS)

    rest, failed = split(request, topics, BY_ID.get, fails_in_t)

    assert rest is not None
    kept = {*topics.named(encoded_and_decoded(rest, version), BY_ID.get)}
    lost = Named("t", 1 if topics.partitions else None)
    assert kept | {lost} == {*topics.named(request, BY_ID.get)}
    assert lost not in kept
    answer = with_rows(api.response(), version, answers, failed)
    assert errors_in(encoded_and_decoded(answer, version), version) == {lost: CODE}


@pytest.mark.parametrize(("name", "version"), CHANGING)
def test_nothing_is_left_of_a_request_that_fails_completely(name: str, version: int) -> None:
    api = by_name(name)
    topics = topics_of(api.request, version)
    assert topics is not None
    request = naming(api.request, version, {"t": [0, 1]}, IDS)

    rest, failed = split(request, topics, BY_ID.get, lambda topic, index: CODE)

    assert rest is None
    assert len(failed) == (2 if topics.partitions else 1)


@pytest.mark.parametrize(("name", "version"), CHANGING)
def test_added_rows_are_those_of_the_apis_own_error_response(name: str, version: int) -> None:
    api = by_name(name)
    topics, answers = topics_of(api.request, version), topics_of(api.response, version)
    assert topics is not None
    assert answers is not None
    request = naming(api.request, version, {"t": [0, 1]}, IDS)
    if name == "Produce":
        request.acks = 1
    _, failed = split(request, topics, BY_ID.get, lambda topic, index: CODE)
    made = with_rows(api.response(), version, answers, failed)

    own = HANDLERS[api.key].error_response(request, CODE, DETAIL)

    assert own is not None
    rows = getattr(encoded_and_decoded(own, version), answers.parent or answers.array)
    if rows:  # some APIs report an error of the request in a field of its own
        assert getattr(encoded_and_decoded(made, version), answers.parent or answers.array) == rows


def test_rows_are_added_to_those_of_the_same_transaction_and_topic() -> None:
    def transaction(name: str, partitions: list[int]) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(name, 1, 0, False, [AddPartitionsToTxnTopic("t", partitions)])

    request = AddPartitionsToTxnRequest([transaction("a", [0, 1]), transaction("b", [1]), transaction("c", [0])])
    topics, answers = topics_of(type(request), 4), topics_of(AddPartitionsToTxnResponse, 4)
    assert topics is not None
    assert answers is not None

    rest, failed = split(request, topics, BY_ID.get, fails_in_t)
    assert rest == AddPartitionsToTxnRequest([transaction("a", [0]), transaction("c", [0])])
    executed = AddPartitionsToTxnResponse(
        results_by_transaction=[AddPartitionsToTxnResult("a", []), AddPartitionsToTxnResult("c", [])]
    )
    answer: Any = with_rows(executed, 4, answers, failed)

    assert [each.transactional_id for each in answer.results_by_transaction] == ["a", "c", "b"]
    assert [len(each.topic_results) for each in answer.results_by_transaction] == [1, 0, 1]


@pytest.mark.parametrize("key", ROWS)
def test_every_answer_can_carry_an_error_everywhere(key: int) -> None:
    api, row = by_key(key), ROWS[key]
    for version in range(row.min_version, row.max_version + 1):
        answer = with_error_everywhere(filled(api.response, version), version, CODE)

        assert carries(encoded_and_decoded(answer, version), version, CODE), version
        assert not carries(filled(api.response, version), version, CODE)
