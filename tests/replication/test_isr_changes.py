"""Changes of the in-sync set through a metadata store whose requests and answers get lost, or arrive late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import load_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, Cmp, Delete, Op, Put, TxnResult
from odradek.broker.metadata.values import (
    RUNNING,
    STARTING,
    Assignment,
    BrokerRegistration,
    PartitionState,
    TopicRecord,
    decode_partition_state,
    encode,
)
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.isr_changes import IsrChanges
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.uuids import uuid_to_text
from tests.client.virtual_time import simulated
from tests.metadata.uncertain import ANSWER, LOSE_ANSWER, LOSE_REQUEST, UncertainStore
from tests.replication.leading import OTHER, SELF, THIRD, Leading
from tests.storage.logs import TOPIC_ID

KEYS = Keys()
STATE = KEYS.partition_state(TOPIC_ID, 0)
LATE = "late"


class LateStore(UncertainStore):
    """An uncertain store that can also keep a request back (LATE) until `deliver`. `outcomes` may be changed."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []
        self.late: list[tuple[Sequence[Cmp], Sequence[Op]]] = []
        self.sent = 0
        super().__init__(iter(lambda: self.outcomes.pop(0) if self.outcomes else ANSWER, None))

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        self.sent += 1
        if self.outcomes[:1] == [LATE]:
            self.outcomes[0] = LOSE_REQUEST
            self.late.append((when, then))
        return await super().txn(when, then)

    async def deliver(self) -> list[bool]:
        """Deliver the late requests; return which were applied."""
        late, self.late = self.late, []
        return [(await self.certain(when, then)).ok for when, then in late]

    async def certain(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        """Run a transaction of another member of the cluster."""
        return await InMemoryStore.txn(self, when, then)


class Cluster:
    """A store with three brokers and a topic, the changes of one leader, and the image that it has."""

    def __init__(self, log_dir: LogDir, **properties: Any) -> None:
        """`properties`: of the topic."""
        self.store = LateStore()
        self.leading = Leading(log_dir, DiskThreads(asyncio.get_running_loop()), **properties)
        self.partition = self.leading.partition
        self.errors: list[BaseException] = []
        self.metrics = Metrics()
        self.changes = IsrChanges(
            self,
            KEYS,
            brokers=self.leading.brokers.get,
            tasks=BackgroundTasks(lambda _, error: self.errors.append(error)),
            metrics=self.metrics,
        )

    async def commit(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        return await self.store.txn(when, then)

    async def read(self, key: bytes) -> KV | None:
        found, _ = await self.store.range(key)
        return next((kv for kv in found if kv.key == key), None)

    async def start(self, *isr: int) -> None:
        for node in (SELF, OTHER, THIRD):
            await self.register(node)
        topic = TopicRecord(uuid_to_text(TOPIC_ID), 1, 3)
        await self.put(KEYS.topic_name("t"), encode(topic))
        await self.put(KEYS.assignment(TOPIC_ID, 0), encode(Assignment([SELF, OTHER, THIRD])))
        await self.write_state(PartitionState(SELF, 0, await self.members(*isr), 0))
        await self.load()

    async def register(self, node: int, state: str = RUNNING) -> None:
        await self.put(KEYS.broker_id(node), encode(BrokerRegistration([], None, "x", 0, "boot", state)))

    async def put(self, key: bytes, value: bytes) -> None:
        """Write a key as another member of the cluster does."""
        assert (await self.store.certain((), (Put(key, value),))).ok

    async def write_state(self, state: PartitionState) -> None:
        await self.put(STATE, encode(state))

    async def members(self, *nodes: int) -> dict[int, int]:
        registered = [(node, await self.read(KEYS.broker_id(node))) for node in nodes]
        return {node: kv.create_revision for node, kv in registered if kv is not None}

    async def load(self) -> None:
        """Bring the leader's image up to date."""
        image = load_image(KEYS, MetadataImage(), *await self.store.range(KEYS.prefix)).after
        self.leading.brokers.clear()
        self.leading.brokers.update(image.registered)
        self.partition.apply(image.topics["t"].partitions[0])

    async def state(self) -> PartitionState:
        kv = await self.read(STATE)
        assert kv is not None
        return decode_partition_state(kv.value)

    async def isr(self) -> list[int]:
        return sorted((await self.state()).isr)

    def lag(self) -> None:
        """Propose to remove the replicas that have not fetched for a minute."""
        self.leading.clock.advance(60_000)
        self.changes.shrink([self.partition])

    def fetched(self, replica: int, offset: int) -> None:
        self.partition.record_follower_fetch(replica, self.leading.brokers[replica].epoch, 0, offset, 0)

    async def settled(self) -> None:
        """Wait until nothing is proposed."""
        for _ in range(1000):
            await asyncio.sleep(0.1)
            if self.partition.proposed_isr is None:
                break
        assert self.partition.proposed_isr is None
        assert not self.errors


@simulated
async def test_a_lagging_replica_leaves_the_isr_when_the_store_has_committed_that(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.leading.append(b"a")

    cluster.lag()
    assert cluster.partition.high_watermark == 0
    await cluster.settled()

    assert await cluster.isr() == [SELF]
    assert (await cluster.state()).partition_epoch == 1
    assert sorted(cluster.partition.isr) == [SELF]
    assert cluster.partition.high_watermark == 1
    assert (cluster.metrics.isr_shrinks, cluster.metrics.isr_expands) == (1, 0)


@simulated
async def test_a_replica_joins_the_isr_with_the_broker_epoch_of_its_fetch(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.fetched(THIRD, 0)

    cluster.changes.expand(cluster.partition, THIRD)
    await cluster.settled()

    assert (await cluster.state()).isr == await cluster.members(SELF, OTHER, THIRD)
    assert cluster.metrics.isr_expands == 1


@pytest.mark.parametrize("script", [[LOSE_REQUEST], [LOSE_ANSWER], [LOSE_REQUEST, LOSE_ANSWER, LOSE_REQUEST]])
@simulated
async def test_the_identical_transaction_is_repeated_until_its_outcome_is_known(
    log_dir: LogDir, script: list[str]
) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.store.outcomes = [*script]
    sent_before = cluster.store.sent

    cluster.lag()
    cluster.changes.shrink([cluster.partition])  # one proposal at a time
    await cluster.settled()

    assert await cluster.isr() == sorted(cluster.partition.isr) == [SELF]
    assert cluster.store.sent == sent_before + len(script) + 1
    assert cluster.metrics.isr_shrinks == 1
    assert cluster.metrics.failed_isr_updates == len(script)


@simulated
async def test_while_the_outcome_is_unknown_all_members_of_both_sets_count(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.store.outcomes = [LOSE_REQUEST] * 20
    cluster.leading.append(b"a")

    cluster.lag()
    await asyncio.sleep(5)

    assert cluster.partition.maximal_isr() == {SELF, OTHER}
    assert cluster.partition.high_watermark == 0
    await cluster.settled()
    assert cluster.partition.high_watermark == 1


@simulated
async def test_a_late_request_changes_nothing_after_the_repeated_one_was_applied(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.store.outcomes = [LATE]

    cluster.lag()
    await cluster.settled()
    cluster.fetched(OTHER, 0)
    cluster.changes.expand(cluster.partition, OTHER)
    await cluster.settled()

    assert await cluster.store.deliver() == [False]
    assert await cluster.isr() == sorted(cluster.partition.isr) == [SELF, OTHER]


@simulated
async def test_a_refused_change_of_an_old_image_takes_the_stored_state_without_waiting_for_the_watch(
    log_dir: LogDir,
) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER, THIRD)
    await cluster.write_state(PartitionState(SELF, 0, await cluster.members(SELF, OTHER), 1))  # the controller

    cluster.lag()
    await cluster.settled()
    assert (await cluster.isr(), sorted(cluster.partition.isr)) == ([SELF, OTHER], [SELF, OTHER])

    cluster.changes.shrink([cluster.partition])
    await cluster.settled()
    assert await cluster.isr() == [SELF]


@pytest.mark.parametrize("how", ["restarted", "starting again", "gone"])
@simulated
async def test_a_replica_whose_registration_has_changed_does_not_join(log_dir: LogDir, how: str) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.fetched(THIRD, 0)
    cluster.store.outcomes = [LATE]
    cluster.changes.expand(cluster.partition, THIRD)
    await asyncio.sleep(0.1)
    if how != "starting again":
        assert (await cluster.store.certain((), (Delete(KEYS.broker_id(THIRD)),))).ok
    if how != "gone":
        await cluster.register(THIRD, STARTING if how == "starting again" else RUNNING)

    await cluster.settled()

    assert await cluster.store.deliver() == [False]
    assert await cluster.isr() == [SELF, OTHER]
    assert cluster.partition.maximal_isr() == {SELF, OTHER}
    assert cluster.metrics.isr_expands == 0
    assert cluster.metrics.failed_isr_updates > 0


@simulated
async def test_after_an_election_the_proposed_members_count_until_the_image_shows_it(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.fetched(OTHER, 0)
    cluster.fetched(THIRD, 0)
    cluster.store.outcomes = [LOSE_ANSWER]
    cluster.changes.expand(cluster.partition, THIRD)
    await asyncio.sleep(0.1)
    # Applied, but the leader does not know. The new member is elected, and fetches no more.
    joined = await cluster.state()
    assert sorted(joined.isr) == [SELF, OTHER, THIRD]
    await cluster.write_state(PartitionState(THIRD, 1, joined.isr, 2))
    await asyncio.sleep(5)

    cluster.leading.append(b"a")
    cluster.fetched(OTHER, 1)
    cluster.leading.clock.advance(60_000)
    cluster.fetched(OTHER, 1)
    assert cluster.partition.maximal_isr() == {SELF, OTHER, THIRD}
    assert cluster.partition.high_watermark == 0

    await cluster.load()
    assert not cluster.partition.is_leader
    assert cluster.partition.proposed_isr is None


@simulated
async def test_an_image_answers_a_proposal(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    cluster.store.outcomes = [LOSE_ANSWER, *[LOSE_REQUEST] * 100]

    cluster.lag()
    await asyncio.sleep(0.1)
    await cluster.load()

    assert cluster.partition.proposed_isr is None
    assert sorted(cluster.partition.isr) == [SELF]
    sent = cluster.store.sent
    await asyncio.sleep(5)
    assert cluster.store.sent == sent


@simulated
async def test_a_change_keeps_what_else_is_in_the_state(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    state = PartitionState(SELF, 0, await cluster.members(SELF, OTHER), 1, rec=1)
    await cluster.put(STATE, encode(state)[:-1] + b',"newer":5}')
    await cluster.load()

    cluster.lag()
    await cluster.settled()

    kv = await cluster.read(STATE)
    assert kv is not None
    assert (await cluster.state()).rec == 1
    assert b'"newer":5' in kv.value


@simulated
async def test_replicas_that_leave_an_isr_below_min_insync_replicas_are_eligible_until_enough_are_in_sync(
    log_dir: LogDir,
) -> None:
    cluster = Cluster(log_dir, min_insync_replicas=2)
    await cluster.start(SELF, OTHER)
    other = await cluster.members(OTHER)

    cluster.lag()
    await cluster.settled()
    state = await cluster.state()
    assert (list(state.isr), state.elr) == ([SELF], other)

    cluster.changes.expand(cluster.partition, THIRD)
    await cluster.settled()
    state = await cluster.state()
    assert (sorted(state.isr), state.elr) == ([SELF, THIRD], {})


@simulated
async def test_eligible_replicas_are_forgotten_when_min_insync_replicas_was_lowered(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir, min_insync_replicas=1)
    await cluster.start(SELF)
    await cluster.write_state(PartitionState(SELF, 0, await cluster.members(SELF), 1, elr=await cluster.members(OTHER)))
    await cluster.load()
    cluster.leading.append(b"a")
    assert cluster.partition.high_watermark == 0

    cluster.changes.shrink([cluster.partition])
    await cluster.settled()

    assert (await cluster.state()).elr == {}
    assert cluster.partition.high_watermark == 1


@simulated
async def test_a_partition_that_is_not_led_is_not_changed(log_dir: LogDir) -> None:
    cluster = Cluster(log_dir)
    await cluster.start(SELF, OTHER)
    await cluster.write_state(PartitionState(OTHER, 1, await cluster.members(SELF, OTHER), 1))
    await cluster.load()
    sent = cluster.store.sent

    cluster.lag()
    cluster.changes.expand(cluster.partition, THIRD)
    await asyncio.sleep(1)

    assert cluster.store.sent == sent
    assert cluster.partition.proposed_isr is None
