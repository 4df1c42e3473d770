from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.transactions.verification import PartitionErrors, TransactionVerifier
from odradek.broker.handlers import txn_offset_commit
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestTopic, TxnOffsetCommitResponse
from tests.handlers.committing_producer import LAST_VERSION_BEFORE_ADDING, CommittingProducer
from tests.handlers.group_members import GroupMember, find_coordinator, new_group_id
from tests.handlers.requests import create
from tests.wire import Wire

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.fixture
async def producer(wire: Wire) -> CommittingProducer:
    """A producer with a group of its own, and the topic `t`."""
    await create(wire, "t", partitions=2)
    producer = CommittingProducer(wire, new_group_id())
    await find_coordinator(wire, producer.group_id)
    await producer.init()
    return producer


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
async def test_offsets_count_when_the_transaction_is_committed(
    producer: CommittingProducer, version: int, committed: bool
) -> None:
    if version <= LAST_VERSION_BEFORE_ADDING:
        await producer.add_offsets()
    assert await producer.commit_one(version) == NONE
    assert (await producer.read(stable=False), await producer.read()) == (-1, UNSTABLE)

    await producer.end(min(version, 5), committed=committed)

    assert await producer.read_stable() == (5 if committed else -1)


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, ErrorCode.INVALID_TXN_STATE),
        (3, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
async def test_a_partition_that_was_not_added_is_refused(
    producer: CommittingProducer, version: int, code: ErrorCode
) -> None:
    assert await producer.commit_one(version) == code
    assert await producer.read() == -1


async def test_rows_of_partitions_that_do_not_exist_and_of_long_metadata(producer: CommittingProducer) -> None:
    await producer.add_offsets()

    rows = await producer.commit(3, {("t", 0): 5, ("t", 9): 1, ("unknown", 0): 1})
    long = await producer.commit(3, {("t", 1): 5, ("t", 9): 1}, metadata="x" * 5000)

    assert rows == {("t", 0): NONE, ("t", 9): UNKNOWN, ("unknown", 0): UNKNOWN}
    assert long == {("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE, ("t", 9): UNKNOWN}


async def test_no_coordinator_decides_on_partitions_that_do_not_exist(producer: CommittingProducer) -> None:
    rows = await producer.commit(3, {("unknown", 0): 1}, group_id="", transactional_id="")

    assert rows == {("unknown", 0): UNKNOWN}


async def test_a_topic_without_partitions_is_not_in_the_response(producer: CommittingProducer) -> None:
    request = producer.request({("t", 0): 5})
    request.topics = [TxnOffsetCommitRequestTopic("t", []), TxnOffsetCommitRequestTopic("unknown", [])]

    assert (await producer.wire.ask(request, 5)).topics == []


@pytest.mark.parametrize("version", [0, 5])
async def test_an_empty_transactional_id_is_refused(producer: CommittingProducer, version: int) -> None:
    assert await producer.commit_one(version, transactional_id="") == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 5])
async def test_an_older_epoch_is_refused_before_the_transaction_is_looked_for(
    producer: CommittingProducer, version: int
) -> None:
    epoch = producer.epoch
    assert await producer.commit_one(5) == NONE
    await producer.end(5)
    assert await producer.read_stable() == 5

    for transactional_id in ("unknown", "", producer.transactional_id):
        refused = await producer.commit_one(version, producer_epoch=epoch, transactional_id=transactional_id)
        assert refused == FENCED


async def test_an_empty_group_id_is_refused(producer: CommittingProducer) -> None:
    rows = await producer.commit(3, {("t", 0): 5, ("unknown", 0): 1}, group_id="")

    assert rows == {("t", 0): ErrorCode.INVALID_GROUP_ID, ("unknown", 0): UNKNOWN}


async def test_members_are_checked(wire: Wire, producer: CommittingProducer) -> None:
    member = GroupMember(wire, producer.group_id, "instance")
    await member.become_only_member()
    generation = member.generation_id
    own = {"member_id": member.member_id, "generation_id": generation, "group_instance_id": "instance"}

    assert await producer.commit_one(5, **own) == NONE
    assert await producer.commit_one(5) == NONE  # of no member
    for changed, code in (
        ({"generation_id": generation - 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x", "group_instance_id": None}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "group_instance_id": None}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "x"}, ErrorCode.FENCED_INSTANCE_ID),
        ({"group_instance_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert await producer.commit_one(5, **(own | changed)) == code
    rows = await producer.commit(5, {("t", 0): 5, ("t", 9): 5}, **(own | {"generation_id": generation + 1}))
    assert rows == {("t", 0): ErrorCode.ILLEGAL_GENERATION, ("t", 9): UNKNOWN}


async def test_a_generation_of_a_group_that_does_not_exist_is_refused(producer: CommittingProducer) -> None:
    assert await producer.commit_one(5, generation_id=3, member_id="m") == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", [4, 5])
async def test_a_producer_that_was_fenced_is_refused(wire: Wire, producer: CommittingProducer, version: int) -> None:
    assert await producer.commit_one(5) == NONE
    next_producer = CommittingProducer(wire, producer.group_id)
    await next_producer.init()

    assert await producer.commit_one(version, 6) == FENCED
    assert await next_producer.read_stable() == -1
    assert await next_producer.commit_one(5, 7) == NONE
    assert await producer.commit_one(version, 8) == FENCED
    await next_producer.end(5)

    assert await next_producer.read_stable() == 7


@pytest.mark.parametrize("version", [4, 5])
async def test_a_delayed_commit_of_a_transaction_that_has_ended_is_refused(
    producer: CommittingProducer, version: int
) -> None:
    epoch = producer.epoch
    assert await producer.commit_one(5) == NONE
    await producer.end(5)
    assert await producer.read_stable() == 5

    assert await producer.commit_one(version, 6, producer_epoch=epoch) == FENCED
    assert await producer.commit_one(5, 7) == NONE
    assert await producer.commit_one(version, 8, producer_epoch=epoch) == FENCED
    await producer.end(5)

    assert await producer.read_stable() == 7


async def test_a_delayed_commit_of_version_1_is_refused_unless_the_next_transaction_added_the_group(
    producer: CommittingProducer,
) -> None:
    await producer.add_offsets()
    assert await producer.commit_one(3) == NONE
    await producer.end(3)
    assert await producer.read_stable() == 5

    assert await producer.commit_one(3, 6) == ErrorCode.INVALID_TXN_STATE

    assert await producer.read() == 5


@pytest.mark.parametrize("version", [3, 5])
async def test_an_unknown_transactional_id_or_another_producer_id_is_refused(
    producer: CommittingProducer, version: int
) -> None:
    for fields in ({"transactional_id": "unknown"}, {"producer_id": producer.producer_id + 1000}):
        assert await producer.commit_one(version, **fields) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.read() == -1


# ------------------------------------------------------------------------- the transaction's coordinator elsewhere


class SlowCoordinator:
    """The coordinator of transactions on another broker: answers when a test says so, what the coordinator says then.

    `error` is its answer instead, if there is one.
    """

    def __init__(self, broker: Broker) -> None:
        self._coordinator = broker.services.transactions
        self.answers = asyncio.Event()
        self.asked = asyncio.Event()
        self.error: ErrorCode | None = None

    def coordinator_of(self, transactional_id: str) -> int:
        return self._coordinator.coordinator_of(transactional_id)

    async def add_partitions(self, *args: Any, adds: bool) -> PartitionErrors:
        added = self._coordinator.add_partitions(*args, adds=adds)
        errors = added if isinstance(added, Mapping) else await added
        self.asked.set()
        await self.answers.wait()
        return errors if self.error is None else dict.fromkeys(errors, KafkaError(self.error))


def start_commit(
    broker: Broker, coordinator: SlowCoordinator, producer: CommittingProducer, version: int, epoch: int | None = None
) -> asyncio.Task[ErrorCode]:
    """Start to handle a commit of offset 6."""
    verifier = TransactionVerifier(
        broker.config.node_id,
        coordinator,
        None,
        lambda: broker.config,
        broker.services.clock,
        broker.services.metrics.transactions,
    )
    services = replace(broker.services, transaction_verifier=verifier)
    connection = ConnectionContext("PLAINTEXT", ("127.0.0.1", 1), ("127.0.0.1", 2))
    context = RequestContext(28, version, 1, None, 0.0, connection)
    fields = {} if epoch is None else {"producer_epoch": epoch}
    steps = txn_offset_commit.handle(services, context, producer.request({("t", 0): 6}, **fields))

    async def code() -> ErrorCode:
        answer = await services.time_slices.finish(steps, connection)
        response = answer if isinstance(answer, TxnOffsetCommitResponse) else await answer
        return ErrorCode(response.topics[0].partitions[0].error_code)

    return asyncio.create_task(code())


@pytest.mark.parametrize("version", [3, 5])
async def test_a_commit_is_written_when_another_broker_has_verified_it(
    broker: Broker, producer: CommittingProducer, version: int
) -> None:
    coordinator = SlowCoordinator(broker)
    await producer.add_offsets()
    commit = start_commit(broker, coordinator, producer, version)
    await coordinator.asked.wait()
    assert await producer.read() == -1

    coordinator.answers.set()

    assert await commit == NONE
    assert await producer.read() == UNSTABLE


@pytest.mark.parametrize("version", [3, 5])
async def test_a_commit_is_refused_if_its_transaction_ends_while_another_broker_verifies_it(
    broker: Broker, producer: CommittingProducer, version: int
) -> None:
    coordinator = SlowCoordinator(broker)
    await producer.add_offsets()
    commit = start_commit(broker, coordinator, producer, version)
    await coordinator.asked.wait()
    await producer.end(version)

    coordinator.answers.set()

    assert await commit == (ErrorCode.INVALID_TXN_STATE if version == 3 else FENCED)
    assert await producer.read() == -1


@pytest.mark.parametrize(
    ("version", "error", "code"),
    [
        (1, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (2, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (5, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (5, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (3, ErrorCode.CONCURRENT_TRANSACTIONS, CONCURRENT),
        (3, ErrorCode.PRODUCER_FENCED, FENCED),
        (3, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
async def test_errors_of_the_verification_by_another_broker(
    broker: Broker, producer: CommittingProducer, version: int, error: ErrorCode, code: ErrorCode
) -> None:
    coordinator = SlowCoordinator(broker)
    coordinator.error = error
    coordinator.answers.set()

    assert await start_commit(broker, coordinator, producer, version) == code


async def test_a_partition_is_verified_once_while_its_transaction_is_open(
    broker: Broker, producer: CommittingProducer
) -> None:
    assert await producer.commit_one(5) == NONE
    coordinator = SlowCoordinator(broker)  # never answers

    assert await start_commit(broker, coordinator, producer, 5) == NONE
    assert await start_commit(broker, coordinator, producer, 3) == NONE
    assert not coordinator.asked.is_set()


@pytest.mark.parametrize("version", range(2, 6))
async def test_before_the_offsets_topic_exists_no_coordinator_is_available(
    broker: Broker, wire: Wire, version: int
) -> None:
    """As a new Apache Kafka answers; the one of the tests has the topic."""
    assert "__consumer_offsets" not in broker.services.metadata.image.topics
    await create(wire, "t", 3)
    producer = CommittingProducer(wire, new_group_id())
    await producer.init()

    assert await producer.commit_one(version) == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_of_a_partition_that_is_named_twice_the_last_offset_counts(producer: CommittingProducer) -> None:
    request = producer.request({("t", 0): 5})
    for offset in (6, 7):
        again = producer.request({("t", 0): offset})
        request.topics += again.topics

    topics = (await producer.wire.ask(request, 5)).topics
    await producer.end(5)

    assert {row.error_code for topic in topics for row in topic.partitions} == {NONE}
    assert sum(len(topic.partitions) for topic in topics) == 3
    assert await producer.read_stable() == 7
