"""The loops of a follower, in virtual time, against leaders that answer as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.follower.fetchers import Fetchers
from odradek.broker.replication.follower.settings import FollowerSettings
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from tests.client.virtual_time import simulated
from tests.replication.follower.following import LoopClock, diverging, follower_of, lead, records, row
from tests.replication.leading import OTHER, SELF, THIRD
from tests.storage.logs import OTHER_ID, TOPIC_ID, values_of

Answer = FetchResponse | Exception | None


class Leader:
    """A connection to a leader. Unanswered requests end after their maximal wait, without rows."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.requests: list[FetchRequest] = []
        self.times: list[float] = []
        self.answers: list[Answer | Callable[[], Answer]] = []
        self.is_closed = False

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0) if self.answers else None
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.sleep(request.max_wait_ms / 1000)
        return answer or FetchResponse(session_id=request.session_id or 7)

    def close(self) -> None:
        self.is_closed = True


def response(*rows: tuple[bytes, PartitionData], session_id: int = 7) -> FetchResponse:
    return FetchResponse(
        session_id=session_id,
        responses=[FetchableTopicResponse(topic_id=topic_id, partitions=[each]) for topic_id, each in rows],
    )


class Following:
    """The fetchers of a broker, and the connections that they have made."""

    def __init__(self, log_dir: LogDir, **settings: int) -> None:
        self.leaders: list[Leader] = []
        self.scripts: list[list[Answer | Callable[[], Answer]]] = []
        self.errors: list[BaseException] = []
        self.metrics = Metrics()
        self.tasks = BackgroundTasks(lambda _, error: self.errors.append(error))
        self.threads = DiskThreads(asyncio.get_running_loop())
        self.log_dir = log_dir
        self.settings = settings
        self.fetchers = Fetchers(
            lambda: FollowerSettings(**self.settings),
            self._connect,
            node_id=SELF,
            broker_epoch=lambda: 11,
            clock=LoopClock(),
            tasks=self.tasks,
            metrics=self.metrics,
        )

    def _connect(self, leader: int) -> Leader:
        self.leaders.append(Leader(leader))
        self.leaders[-1].answers = self.scripts.pop(0) if self.scripts else []
        return self.leaders[-1]

    def follow(self, name: str = "t", topic_id: bytes = TOPIC_ID) -> Partition:
        partition = follower_of(self.log_dir, self.threads, name, topic_id)
        self.fetchers.update(partition)
        return partition

    async def stop(self) -> None:
        await self.tasks.stop()
        assert not self.errors
        assert all(leader.is_closed for leader in self.leaders)


def named(request: FetchRequest) -> dict[bytes, int]:
    """The fetch offsets in a request, by topic id."""
    return {topic.topic_id: each.fetch_offset for topic in request.topics for each in topic.partitions}


@simulated
async def test_one_session_fetches_all_partitions_of_a_leader(log_dir: LogDir) -> None:
    following = Following(log_dir)
    following.scripts = [[response((TOPIC_ID, row(records(b"a", base_offset=0), high_watermark=1)))]]
    first, second = following.follow(), following.follow("u", OTHER_ID)
    await asyncio.sleep(0.9)

    [leader] = following.leaders
    opening, later = leader.requests[:2]
    assert leader.leader == OTHER
    assert (opening.replica_state.replica_id, opening.replica_state.replica_epoch) == (SELF, 11)
    assert (opening.max_wait_ms, opening.min_bytes, opening.max_bytes) == (500, 1, 10_485_760)
    assert (opening.session_id, opening.session_epoch, named(opening)) == (0, 0, {TOPIC_ID: 0, OTHER_ID: 0})
    assert (later.session_id, later.session_epoch, named(later)) == (7, 1, {TOPIC_ID: 1})
    assert values_of(first.log) == [b"a"]
    assert (first.high_watermark, second.log.log_end_offset) == (1, 0)
    assert following.metrics.replication_bytes_in == first.log.size_bytes
    await following.stop()


@simulated
async def test_each_loop_of_a_leader_has_its_own_connection(log_dir: LogDir) -> None:
    following = Following(log_dir, num_replica_fetchers=2)
    one, other = following.follow(), following.follow("u", OTHER_ID[:-1] + bytes([TOPIC_ID[-1] + 1]))
    await asyncio.sleep(0.1)

    assert [named(leader.requests[0]) for leader in following.leaders] == [{one.topic_id: 0}, {other.topic_id: 0}]
    await following.stop()


@simulated
async def test_a_change_of_the_number_of_loops_counts_for_the_next_leader_epoch(log_dir: LogDir) -> None:
    following = Following(log_dir, num_replica_fetchers=1)
    partitions = [following.follow(f"t{number}", bytes([number]) * 16) for number in range(4)]
    await asyncio.sleep(0.1)
    assert len(following.leaders) == 1

    following.settings["num_replica_fetchers"] = 2
    for partition in partitions:
        following.fetchers.update(partition)
    await asyncio.sleep(0.1)

    assert len([leader for leader in following.leaders if not leader.is_closed]) == 2
    await following.stop()


@simulated
async def test_a_partition_with_another_leader_is_fetched_from_that_one(log_dir: LogDir) -> None:
    following = Following(log_dir)
    partition = following.follow()
    await asyncio.sleep(0.1)

    lead(partition, THIRD, 2)
    following.fetchers.update(partition)
    await asyncio.sleep(0.1)

    old, new = following.leaders
    assert (old.is_closed, new.leader, new.is_closed) == (True, THIRD, False)
    assert new.requests[0].topics[0].partitions[0].current_leader_epoch == 2
    await following.stop()


@simulated
async def test_a_partition_that_this_broker_leads_is_not_fetched(log_dir: LogDir) -> None:
    following = Following(log_dir)
    partition = following.follow()
    stays = following.follow("u", OTHER_ID)
    await asyncio.sleep(0.1)
    [leader] = following.leaders

    lead(partition, SELF, 2)
    following.fetchers.update(partition)
    await asyncio.sleep(1)

    assert [(topic.topic_id, topic.partitions) for topic in leader.requests[1].forgotten_topics_data] == [
        (TOPIC_ID, [0])
    ]
    lead(stays, -1, 2)
    following.fetchers.update(stays)
    await asyncio.sleep(0)
    assert leader.is_closed
    await following.stop()


@simulated
async def test_a_response_of_an_earlier_epoch_is_discarded(log_dir: LogDir) -> None:
    following = Following(log_dir)

    def answer_after_election() -> FetchResponse:
        lead(partition, OTHER, 2)
        following.fetchers.update(partition)
        return response((TOPIC_ID, row(records(b"a", base_offset=0))))

    following.scripts = [[answer_after_election], []]
    partition = following.follow()
    await asyncio.sleep(0.1)

    assert partition.log.log_end_offset == 0
    await following.stop()


@simulated
async def test_a_bad_partition_pauses_and_holds_up_no_other(log_dir: LogDir) -> None:
    following = Following(log_dir)
    spoiled = bytearray(records(b"a", base_offset=0))
    spoiled[-1] ^= 1
    following.scripts = [
        [
            response((TOPIC_ID, row(bytes(spoiled))), (OTHER_ID, row(records(b"b", base_offset=0)))),
            response((OTHER_ID, row(records(b"c", base_offset=1)))),
        ]
    ]
    bad, good = following.follow(), following.follow("u", OTHER_ID)
    await asyncio.sleep(3)

    [leader] = following.leaders
    assert values_of(good.log) == [b"b", b"c"]
    assert bad.log.log_end_offset == 0
    assert [topic.topic_id for topic in leader.requests[1].forgotten_topics_data] == [TOPIC_ID]
    again = [time for time, request in zip(leader.times, leader.requests, strict=True) if TOPIC_ID in named(request)]
    assert again[0] == 0
    assert 1.0 <= again[1] <= 1.5
    await following.stop()


@simulated
async def test_a_replica_that_would_lose_committed_records_is_stopped_and_counted(log_dir: LogDir) -> None:
    following = Following(log_dir)
    batches = (records(b"a", base_offset=0, epoch=0), records(b"b", base_offset=1))
    following.scripts = [[response((TOPIC_ID, row(*batches, high_watermark=2))), response((TOPIC_ID, diverging(0, 1)))]]
    partition = following.follow()
    following.follow("u", OTHER_ID)
    await asyncio.sleep(10)

    [leader] = following.leaders
    assert values_of(partition.log) == [b"a", b"b"]
    assert not any(TOPIC_ID in named(request) for request in leader.requests[2:])
    assert len(leader.requests) > 10
    assert following.fetchers.stopped_replicas == following.fetchers.failed_partitions == 1
    lead(partition, OTHER, 2)
    following.fetchers.update(partition)
    assert following.fetchers.stopped_replicas == 1
    assert following.fetchers.failed_partitions == 0
    await asyncio.sleep(1)
    assert TOPIC_ID in named(leader.requests[-2]) or TOPIC_ID in named(leader.requests[-1])
    await following.stop()


@simulated
async def test_an_unreachable_leader_is_tried_again_with_a_new_session(log_dir: LogDir) -> None:
    following = Following(log_dir)
    following.scripts = [[None, ConnectionRefusedError(), TimeoutError()]]
    following.follow()
    await asyncio.sleep(3)

    [leader] = following.leaders
    assert leader.times[:4] == [0, 0.5, 1.5, 2.5]
    assert [request.session_epoch for request in leader.requests[:4]] == [0, 1, 0, 0]
    assert [request.session_id for request in leader.requests[:4]] == [0, 7, 7, 7]
    assert all(TOPIC_ID in named(request) for request in leader.requests[2:4])
    await following.stop()


@simulated
async def test_a_lost_session_is_opened_again_at_once(log_dir: LogDir) -> None:
    following = Following(log_dir)
    following.scripts = [[None, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)]]
    following.follow()
    await asyncio.sleep(0.6)

    [leader] = following.leaders
    assert leader.times[:3] == [0, 0.5, 0.5]
    assert [request.session_epoch for request in leader.requests[:3]] == [0, 1, 0]
    await following.stop()


@simulated
async def test_without_room_for_a_session_every_request_names_all_partitions(log_dir: LogDir) -> None:
    following = Following(log_dir)
    following.scripts = [[response(session_id=0), response(session_id=0)]]
    following.follow()
    await asyncio.sleep(0.1)

    assert [named(request) for request in following.leaders[0].requests] == [{TOPIC_ID: 0}] * 3
    assert [request.session_epoch for request in following.leaders[0].requests] == [0] * 3
    await following.stop()


@simulated
async def test_the_lag_is_the_number_of_committed_records_that_are_missing(log_dir: LogDir) -> None:
    following = Following(log_dir)
    assert following.fetchers.max_lag == 0
    following.scripts = [[response((TOPIC_ID, row(records(b"a", base_offset=0), high_watermark=5)))]]
    following.follow()
    await asyncio.sleep(0.1)

    assert following.fetchers.max_lag == 4
    [lag] = following.fetchers.lags()
    assert (lag.leader, lag.number, lag.records) == (OTHER, 0, 4)
    await following.stop()
