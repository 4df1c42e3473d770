"""Transactions whose partitions other brokers lead than their coordinator, while some cannot be reached or move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.protocol.errors import ErrorCode
from tests.broker.replicating import Cluster, three_brokers
from tests.handlers.committing_producer import CommittingProducer
from tests.handlers.group_members import find_coordinator
from tests.handlers.requests import fetch
from tests.handlers.test_describe_producers import describe
from tests.handlers.test_transactional_produce import committed_values
from tests.handlers.transactional_batches import ProducingProducer
from tests.wire import Wire

COORDINATOR, NEXT, AWAY = 1, 2, 3
GROUP = "g"  # its partition of three is led by broker 2
STATE = "__transaction_state"


class Place(Cluster):
    """Three brokers, of which the first coordinates all transactions, and a connection to each."""

    wires: dict[int, Wire]

    async def create_assigned(self, name: str, *assignments: list[int]) -> None:
        """Create a topic with these replicas of each partition."""
        metadata = self.brokers[COORDINATOR].services.metadata
        await create_topic(metadata, name, assignments=dict(enumerate(assignments)))
        for index, replicas in enumerate(assignments):
            await self.until(lambda index=index, replicas=replicas: self._leads(replicas[0], name, index))  # type: ignore[misc]

    def _leads(self, node_id: int, topic: str, index: int) -> bool:
        partition = self.partition(node_id, topic, index)
        return partition is not None and partition.is_leader and self.leader(topic, index) == node_id

    def requests(self, node_id: int, name: str) -> int:
        """How many requests of an API a broker has answered."""
        found = self.brokers[node_id].metrics.apis.get(name)
        return 0 if found is None else found.requests

    def remaining(self, producer: ProducingProducer, node_id: int = COORDINATOR) -> set[tuple[str, int]]:
        """Return the partitions that lack the marker, as the coordinator knows."""
        return set(self.brokers[node_id].services.transactions.markers.remaining(producer.transactional_id))

    async def producer(self, *, is_new: bool = True) -> ProducingProducer:
        producer = ProducingProducer(self.wires[COORDINATOR], is_new=is_new)
        await producer.start()
        assert self.leader(STATE) == COORDINATOR
        return producer

    async def completed(self, producer: ProducingProducer, node_id: int = COORDINATOR) -> str:
        """Return the state when no marker is missing."""
        producer.wire = self.wires[node_id]
        while (state := (await producer.describe()).transaction_state).startswith("Prepare"):
            pass
        return state


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    properties = {
        "offsets_topic_num_partitions": "3",
        "transaction_state_log_num_partitions": "1",
        "transaction_state_log_min_isr": "1",
    }
    async with three_brokers(tmp_path, Place, **properties) as made, AsyncExitStack() as stack:
        made.wires = {
            node_id: await stack.enter_async_context(Wire("127.0.0.1", broker.port))
            for node_id, broker in made.brokers.items()
        }
        yield made


async def produce(
    place: Place, producer: ProducingProducer, node_id: int, topic: str, value: bytes, index: int = 0, sequence: int = 0
) -> ErrorCode:
    """Produce to a leader, again while the coordinator cannot be asked; return the code of the answer."""
    coordinator, producer.wire = producer.wire, place.wires[node_id]
    try:
        while (row := await producer.produce(topic, value, index=index, sequence=sequence)).error_code in (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.CONCURRENT_TRANSACTIONS,
        ):
            pass
        return ErrorCode(row.error_code)
    finally:
        producer.wire = coordinator


async def decided(place: Place, topic: str, *, is_new: bool = True) -> ProducingProducer:
    """Return a producer whose transaction is committed, while its coordinator does not reach the partition's leader."""
    producer = await place.producer(is_new=is_new)
    if not is_new:
        await producer.add_partition(topic, 0)
    assert await produce(place, producer, AWAY, topic, b"v") is ErrorCode.NONE
    place.roads[COORDINATOR].close(place.brokers[AWAY].port)
    await producer.finish(commit=True)
    assert (await producer.describe()).transaction_state == "PrepareCommit"
    assert place.remaining(producer) == {(topic, 0)}
    return producer


@pytest.mark.parametrize("is_new", [True, False])
async def test_other_brokers_verify_add_and_end(place: Place, is_new: bool) -> None:
    await place.create_assigned("t", [2], [3])
    await find_coordinator(place.wires[2], GROUP)
    producer = await place.producer(is_new=is_new)
    committer = CommittingProducer(place.wires[2], GROUP)
    committer.transactional_id = producer.transactional_id
    sequence = 0
    for commit, value, offset in ((True, b"a", 5), (False, b"b", 6)):
        for index in range(2):
            if not is_new:
                await producer.add_partition("t", index)
            assert await produce(place, producer, 2 + index, "t", value, index, sequence) is ErrorCode.NONE
        committer.producer_id, committer.epoch = producer.producer_id, producer.epoch
        if not is_new:
            assert await producer.add_offsets(GROUP) is ErrorCode.NONE
        assert await committer.commit_one(5 if is_new else 4, offset) is ErrorCode.NONE
        assert await committer.read() is ErrorCode.UNSTABLE_OFFSET_COMMIT
        await producer.finish(commit=commit)
        assert await place.completed(producer) == ("CompleteCommit" if commit else "CompleteAbort")
        sequence += not is_new

    for index in range(2):
        wire = place.wires[2 + index]
        assert await committed_values(wire, "t", index) == [b"a", None, b"b", None]
        row = await fetch(wire, "t", 2, index, isolation_level=1)
        assert [each.first_offset for each in row.aborted_transactions or ()] == [2]
        assert place.requests(2 + index, "WriteTxnMarkers") >= 2
    assert await committer.read_stable() == 5
    versions = place.brokers[COORDINATOR].metrics.apis["AddPartitionsToTxn"].versions
    assert sum(count for version, count in versions.items() if version >= 4) >= 4, (
        "those of brokers, for each partition"
    )
    assert place.requests(COORDINATOR, "WriteTxnMarkers") == 0


async def test_another_broker_refuses_a_partition_that_was_not_added(place: Place) -> None:
    await place.create_assigned("t", [AWAY])
    producer = await place.producer(is_new=False)

    assert await produce(place, producer, AWAY, "t", b"v") is ErrorCode.INVALID_TXN_STATE
    producer.epoch += 1
    assert await produce(place, producer, AWAY, "t", b"v") is ErrorCode.INVALID_PRODUCER_EPOCH

    assert await committed_values(place.wires[AWAY], "t") == []


async def test_a_batch_is_not_accepted_while_the_coordinator_cannot_be_asked(place: Place) -> None:
    await place.create_assigned("t", [AWAY])
    producer = await place.producer()
    port = place.brokers[COORDINATOR].port
    place.roads[AWAY].close(port)
    producer.wire = place.wires[AWAY]

    row = await producer.produce("t", b"v")

    assert row.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    place.roads[AWAY].open(port)
    producer.wire = place.wires[COORDINATOR]
    assert await produce(place, producer, AWAY, "t", b"v") is ErrorCode.NONE
    await producer.finish(commit=True)
    assert await place.completed(producer) == "CompleteCommit"
    assert await committed_values(place.wires[AWAY], "t") == [b"v", None]


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_marker_is_sent_until_its_broker_can_be_reached(place: Place, is_new: bool) -> None:
    await place.create_assigned("t", [AWAY])
    producer = await decided(place, "t", is_new=is_new)
    assert await committed_values(place.wires[AWAY], "t") == []

    place.roads[COORDINATOR].open(place.brokers[AWAY].port)

    assert await place.completed(producer) == "CompleteCommit"
    assert await committed_values(place.wires[AWAY], "t") == [b"v", None]


async def test_the_marker_of_a_topic_that_was_deleted_meanwhile_counts_as_written(place: Place) -> None:
    await place.create_assigned("t", [AWAY])
    producer = await decided(place, "t")

    await delete_topic(place.brokers[COORDINATOR].services.metadata, name="t")

    assert await place.completed(producer) == "CompleteCommit"


async def test_a_marker_goes_to_the_next_leader(place: Place) -> None:
    await place.create_assigned("t", [AWAY, NEXT])
    producer = await decided(place, "t")

    await place.stop(AWAY)

    assert await place.completed(producer) == "CompleteCommit"
    assert place.leader("t") == NEXT
    assert await committed_values(place.wires[NEXT], "t") == [b"v", None]


async def test_the_next_coordinator_sends_the_markers_and_the_earlier_one_is_refused(place: Place) -> None:
    await place.create_assigned("t", [AWAY])
    producer = await decided(place, "t")
    # The coordinator loses its session without learning of it.
    earlier = place.brokers[COORDINATOR].services.transactions
    place.access[COORDINATOR].cut()
    metadata = place.brokers[COORDINATOR].services.metadata
    ((registered, *_), _) = await place.store.range(metadata.keys.broker_id(COORDINATOR))
    await place.store.revoke(registered.lease)
    images = [place.brokers[node].services.metadata for node in (NEXT, AWAY)]
    await place.until(lambda: all(each.image.topics[STATE].partitions[0].leader not in (-1, 1) for each in images))
    coordinator = images[0].image.topics[STATE].partitions[0].leader
    while (await place.wires[coordinator].ask(producer.describe_request(), 0)).transaction_states[0].error_code:
        pass

    assert await place.completed(producer, coordinator) == "CompleteCommit"
    [state] = (await describe(place.wires[AWAY], "t")).active_producers
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (1, -1)

    place.roads[COORDINATOR].open(place.brokers[AWAY].port)
    assert await produce(place, producer, AWAY, "t", b"w") is ErrorCode.NONE
    sent = place.requests(AWAY, "WriteTxnMarkers")
    late = TransactionMarker(producer.producer_id, producer.epoch + 1, False, 0, 2)
    ended: list[bool] = []

    async def is_coordinator() -> bool:
        return False

    earlier.markers.send(producer.transactional_id, late, [("t", 0)], lambda: True, is_coordinator, ended.append)
    await place.until(lambda: bool(ended))
    assert ended == [False], "TRANSACTION_COORDINATOR_FENCED: it stops"
    assert place.requests(AWAY, "WriteTxnMarkers") == sent + 1
    assert await committed_values(place.wires[AWAY], "t") == [b"v", None], "the next transaction stays open"
