from __future__ import annotations

import pytest

from odradek.broker.randomness import SeededRandomness
from odradek.broker.replication.fetch.fetch_session import Fetch, Row, next_epoch
from odradek.broker.replication.fetch.fetch_sessions import EVICTION_AGE, FetchSessions
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from odradek.protocol.schema import ZERO_UUID

BY_NAME = 12
BY_ID = 13
AN_ID = bytes(range(16))


def request(
    session_id: int = 0,
    epoch: int = 0,
    topics: dict[str, list[int]] | None = None,
    forgotten: dict[str, list[int]] | None = None,
    offset: int = 0,
) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic, ZERO_UUID, [FetchPartition(index, fetch_offset=offset) for index in indexes])
            for topic, indexes in (topics or {}).items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic, ZERO_UUID, indexes) for topic, indexes in (forgotten or {}).items()
        ],
    )


def answer(fetch: Fetch, records: dict[tuple[str, int], bytes] | None = None, **fields: int) -> FetchResponse:
    """Answer every wanted partition, with `records` for some of them."""
    rows: list[Row] = []
    for wanted in fetch.partitions:
        index = wanted.request.partition
        data = PartitionData(index, records=(records or {}).get((wanted.topic, index), b""), log_start_offset=0)
        for name, value in fields.items():
            setattr(data, name, value)
        rows.append((wanted, data))
    return fetch.respond(rows)


def partitions_in(response: FetchResponse) -> list[tuple[str, int]]:
    return [(topic.topic, row.partition_index) for topic in response.responses for row in topic.partitions]


def wanted(fetch: Fetch) -> list[tuple[str, int]]:
    return [(partition.topic, partition.request.partition) for partition in fetch.partitions]


class Sessions:
    """A cache of sessions, and its clock."""

    def __init__(self, slots: int = 10, max_partitions: int = 100) -> None:
        self.clock = ManualClock()
        self.cache = FetchSessions(slots, self.clock, SeededRandomness(1), max_partitions)

    def begin_by_name(self, message: FetchRequest, *, from_follower: bool = False) -> Fetch:
        return self.cache.begin(message, BY_NAME, from_follower=from_follower)

    def start(self, topics: dict[str, list[int]], *, from_follower: bool = False) -> int:
        """Open a session and return its id, 0 if there was no room."""
        return answer(self.begin_by_name(request(topics=topics), from_follower=from_follower)).session_id


def test_without_a_session_every_partition_is_returned() -> None:
    sessions = Sessions()

    response = answer(sessions.begin_by_name(request(epoch=-1, topics={"a": [0, 1], "b": [0]})))

    assert partitions_in(response) == [("a", 0), ("a", 1), ("b", 0)]
    assert response.session_id == 0
    assert len(sessions.cache) == 0


def test_a_full_fetch_returns_every_partition_and_opens_a_session() -> None:
    sessions = Sessions()

    response = answer(sessions.begin_by_name(request(topics={"a": [0, 1]})))

    assert partitions_in(response) == [("a", 0), ("a", 1)]
    assert response.session_id > 0
    assert len(sessions.cache) == 1
    assert sessions.cache.partitions_count == 2


def test_the_partitions_of_a_session_are_listed_without_counting_a_request() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0, 1]})

    listed = sessions.cache.partitions_of(session)

    assert [(each.topic, each.request.partition) for each in listed] == [("a", 0), ("a", 1)]
    assert sessions.cache.partitions_of(session + 1) == ()
    assert wanted(sessions.begin_by_name(request(session, 1))) == [("a", 0), ("a", 1)]


def test_an_incremental_fetch_reads_all_and_returns_only_news() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0, 1, 2]})

    fetch = sessions.begin_by_name(request(session, 1))
    assert wanted(fetch) == [("a", 0), ("a", 1), ("a", 2)]
    response = answer(fetch, {("a", 1): b"records"})

    assert partitions_in(response) == [("a", 1)]
    assert response.session_id == session


def test_cleared_sessions_are_unknown() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0, 1, 2]})
    sessions.cache.clear()
    assert (len(sessions.cache), sessions.cache.partitions_count) == (0, 0)
    with pytest.raises(KafkaError) as error:
        sessions.begin_by_name(request(session, 1))
    assert error.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("field", ["high_watermark", "log_start_offset"])
def test_a_moved_offset_is_returned_once(field: str) -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})

    first = answer(sessions.begin_by_name(request(session, 1)), None, **{field: 7})
    second = answer(sessions.begin_by_name(request(session, 2)), None, **{field: 7})

    assert partitions_in(first) == [("a", 0)]
    assert partitions_in(second) == []


def test_an_error_is_returned_every_time_and_its_end_too() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    first = answer(sessions.begin_by_name(request(session, 1)), error_code=error)
    second = answer(sessions.begin_by_name(request(session, 2)), error_code=error)
    recovered = answer(sessions.begin_by_name(request(session, 3)))
    quiet = answer(sessions.begin_by_name(request(session, 4)))

    row = ("a", 0)
    assert [partitions_in(response) for response in (first, second, recovered, quiet)] == [[row], [row], [row], []]


def test_a_diverging_epoch_is_returned() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})
    fetch = sessions.begin_by_name(request(session, 1))
    data = PartitionData(0, log_start_offset=0, records=b"")
    data.diverging_epoch.epoch = 3

    response = fetch.respond([(fetch.partitions[0], data)])

    assert partitions_in(response) == [("a", 0)]


def test_the_high_watermark_is_returned_again_after_a_diverging_epoch() -> None:
    """The follower only truncates its log then, and may lack no record afterwards."""
    sessions = Sessions()
    session = sessions.start({"a": [0]})
    fetch = sessions.begin_by_name(request(session, 1))
    data = PartitionData(0, high_watermark=7, log_start_offset=0, records=b"")
    data.diverging_epoch.epoch = 3
    fetch.respond([(fetch.partitions[0], data)])

    truncated = answer(sessions.begin_by_name(request(session, 2)), high_watermark=7)
    quiet = answer(sessions.begin_by_name(request(session, 3)), high_watermark=7)

    assert [partitions_in(response) for response in (truncated, quiet)] == [[("a", 0)], []]


def test_the_high_watermark_is_returned_again_in_another_leader_epoch() -> None:
    """The follower discards what was on its way to it when the epoch changed."""
    sessions = Sessions()
    session = sessions.start({"a": [0, 1]})
    answer(sessions.begin_by_name(request(session, 1)), high_watermark=7)
    later = request(session, 2, {"a": [0, 1]})
    later.topics[0].partitions[0].current_leader_epoch = 5

    response = answer(sessions.begin_by_name(later), high_watermark=7)

    assert partitions_in(response) == [("a", 0)]


def test_a_partition_that_returned_records_moves_to_the_end() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0, 1, 2]})

    answer(sessions.begin_by_name(request(session, 1)), {("a", 0): b"records"})

    assert wanted(sessions.begin_by_name(request(session, 2))) == [("a", 1), ("a", 2), ("a", 0)]


def test_the_order_survives_partitions_of_several_topics() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0, 1], "b": [0]})
    answer(sessions.begin_by_name(request(session, 1)), {("a", 0): b"records"})

    response = answer(sessions.begin_by_name(request(session, 2)), {("a", 0): b"1", ("a", 1): b"2", ("b", 0): b"3"})

    assert partitions_in(response) == [("a", 1), ("b", 0), ("a", 0)]
    assert [topic.topic for topic in response.responses] == ["a", "b", "a"]


def test_a_request_adds_changes_and_forgets_partitions() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0, 1]})

    fetch = sessions.begin_by_name(request(session, 1, topics={"a": [1], "b": [0]}, forgotten={"a": [0, 9]}, offset=5))

    assert wanted(fetch) == [("a", 1), ("b", 0)]
    assert [partition.request.fetch_offset for partition in fetch.partitions] == [5, 5]


def test_a_partition_added_later_is_returned_the_first_time() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})

    response = answer(sessions.begin_by_name(request(session, 1, topics={"b": [0]})))

    assert partitions_in(response) == [("b", 0)]


def test_a_session_without_partitions_is_closed() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})

    response = answer(sessions.begin_by_name(request(session, 1, forgotten={"a": [0]})))

    assert response.session_id == 0
    assert len(sessions.cache) == 0


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_closes_the_session_that_it_names(epoch: int) -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})

    sessions.begin_by_name(request(session, epoch, topics={"a": [0]}))

    with pytest.raises(KafkaError) as raised:
        sessions.begin_by_name(request(session, 1))
    assert raised.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 7])
def test_a_request_with_a_wrong_epoch_is_refused(epoch: int) -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})

    with pytest.raises(KafkaError) as raised:
        sessions.begin_by_name(request(session, epoch))

    assert raised.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_repeated_request_is_refused() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})
    sessions.begin_by_name(request(session, 1))

    with pytest.raises(KafkaError) as raised:
        sessions.begin_by_name(request(session, 1))

    assert raised.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_parked_request_is_refused_after_a_later_one() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})
    parked = sessions.begin_by_name(request(session, 1))
    sessions.begin_by_name(request(session, 2))

    response = answer(parked, {("a", 0): b"records"})

    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert response.responses == []


def test_a_session_cannot_change_from_names_to_ids() -> None:
    sessions = Sessions()
    session = sessions.start({"a": [0]})

    with pytest.raises(KafkaError) as raised:
        sessions.cache.begin(request(session, 1), BY_ID, from_follower=False)

    assert raised.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_with_ids_a_partition_is_identified_by_its_topic_id() -> None:
    sessions = Sessions()
    topics = [FetchTopic("", AN_ID, [FetchPartition(0)])]
    opened = answer(sessions.cache.begin(FetchRequest(session_epoch=0, topics=topics), BY_ID, from_follower=False))
    again = [FetchTopic("", AN_ID, [FetchPartition(0, fetch_offset=9)])]
    message = FetchRequest(session_id=opened.session_id, session_epoch=1, topics=again)

    [partition] = sessions.cache.begin(message, BY_ID, from_follower=False).partitions

    assert partition.request.fetch_offset == 9


def test_epochs_wrap_to_one() -> None:
    assert next_epoch(0) == 1
    assert next_epoch(0x7FFFFFFF) == 1
    assert next_epoch(-1) == -1


def test_without_slots_there_are_no_sessions() -> None:
    sessions = Sessions(slots=0)

    assert sessions.start({"a": [0]}) == 0


def test_a_full_cache_keeps_young_sessions() -> None:
    sessions = Sessions(slots=1)
    kept = sessions.start({"a": [0]})

    assert sessions.start({"b": [0, 1, 2]}) == 0
    assert wanted(sessions.begin_by_name(request(kept, 1))) == [("a", 0)]


def test_a_full_cache_replaces_the_least_recently_used_session() -> None:
    sessions = Sessions(slots=2)
    unused, used = sessions.start({"a": [0]}), sessions.start({"b": [0]})
    sessions.clock.advance(int(EVICTION_AGE * 1000) + 1)
    sessions.begin_by_name(request(used, 1))

    assert sessions.start({"c": [0]}) > 0
    assert sessions.cache.evictions == 1
    with pytest.raises(KafkaError):
        sessions.begin_by_name(request(unused, 1))
    sessions.begin_by_name(request(used, 2))


def test_a_full_cache_replaces_an_old_session_by_a_larger_one_only() -> None:
    sessions = Sessions(slots=1)
    old = sessions.start({"a": [0]})
    sessions.clock.advance(int(EVICTION_AGE * 1000) + 1)
    sessions.begin_by_name(request(old, 1))

    assert sessions.start({"b": [0]}) == 0
    assert sessions.start({"b": [0, 1]}) > 0


def test_a_full_cache_replaces_a_young_consumer_by_a_follower() -> None:
    sessions = Sessions(slots=1)
    sessions.start({"a": [0, 1, 2]})

    assert sessions.start({"b": [0]}, from_follower=True) > 0
    assert sessions.start({"c": [0, 1, 2, 3]}) == 0


def test_the_partitions_of_all_sessions_are_bounded() -> None:
    sessions = Sessions(max_partitions=5)
    first = sessions.start({"a": [0, 1, 2]})

    assert sessions.start({"a": [0, 1, 2]}) == 0
    assert sessions.start({"a": [0, 1]}) > 0
    assert sessions.start({"a": [0, 1, 2, 3, 4, 5]}) == 0
    assert first > 0
    assert sessions.cache.partitions_count == 5


def test_old_sessions_are_replaced_for_their_partitions() -> None:
    sessions = Sessions(max_partitions=5)
    sessions.start({"a": [0, 1]})
    sessions.start({"a": [0, 1]})
    sessions.clock.advance(121_000)

    assert sessions.start({"a": [0, 1, 2, 3, 4]}) > 0
    assert sessions.cache.evictions == 2
    assert sessions.cache.partitions_count == 5


def test_a_session_that_grows_over_the_bound_ends() -> None:
    sessions = Sessions(max_partitions=5)
    session_id = sessions.start({"a": [0, 1, 2]})
    grown = request(session_id, 1, topics={"b": [0, 1, 2]})

    with pytest.raises(KafkaError) as refusal:
        sessions.begin_by_name(grown)

    assert refusal.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions.cache) == 0
    assert sessions.cache.partitions_count == 0
