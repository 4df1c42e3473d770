"""Transactions of many changes: how they are split, and what refuses a late one."""

from __future__ import annotations

from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import BrokerImage, PartitionImage, TopicImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.leadership import Decision
from odradek.broker.metadata.leaders.state_changes import StateChange, transactions
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import MAX_OPERATIONS, Put, created_at
from odradek.broker.metadata.values import RUNNING, Assignment, PartitionState
from tests.metadata.conftest import Start, until

KEYS = Keys()


def broker(node_id: int) -> BrokerImage:
    return BrokerImage(node_id, 1, [], None, RUNNING, "", 1, revision=1)


def changes(count: int, *, leaders: int, moves: bool = False) -> list[StateChange]:
    """Return elections of so many partitions, of the given number of leaders in turn."""
    partitions = [PartitionImage(0, 1, [0], {0: 1}, 1, state_revision=1) for _ in range(count)]
    topic = TopicImage("t", bytes(16), partitions)
    assignment = Assignment([1]) if moves else None
    return [
        StateChange(topic, index, Decision(PartitionState(index % leaders + 1, 2, {0: 1}, 2), assignment=assignment))
        for index in range(count)
    ]


def sizes(*, leaders: int, moves: bool = False) -> list[int]:
    brokers = {node_id: broker(node_id) for node_id in range(1, leaders + 1)}
    wanted = changes(300, leaders=leaders, moves=moves)
    made = list(transactions(KEYS, brokers, wanted, created_at(KEYS.controller, 1)))
    assert [change for each in made for change in each.changes] == wanted
    assert all(max(len(each.when), len(each.then)) <= MAX_OPERATIONS for each in made)
    return [len(each.changes) for each in made]


def test_a_transaction_is_as_large_as_the_store_allows() -> None:
    assert sizes(leaders=1) == [125, 125, 50]
    assert sizes(leaders=3) == [123, 123, 54]
    assert sizes(leaders=3, moves=True) == [64, 64, 64, 64, 44]
    assert sum(sizes(leaders=200)) == 300


async def test_a_broker_that_has_restarted_since_the_decision_is_not_elected(
    shared: InMemoryStore, start: Start
) -> None:
    """A transaction may be delivered late. By then the new leader may have lost its log."""
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    topic = await create_topic(first, "t", assignments={0: [1, 2]})
    state = PartitionState(2, 1, topic.partitions[0].isr, 1)
    [late] = transactions(first.keys, first.image.brokers, [StateChange(topic, 0, Decision(state))])
    _, registration = late.when
    assert (await shared.txn((registration,), (Put(b"before", b""),))).ok

    await second.stop(clean=False)
    await start(shared, 2)

    assert not (await shared.txn((registration,), (Put(b"after", b""),))).ok
