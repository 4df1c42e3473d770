"""Random operations, snapshots and restores: after each restore the broker is seen as it was at the snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from odradek.broker.broker import Broker
from odradek.broker.storage.compaction.cleaner import CleanerSettings
from odradek.broker.testing.snapshots import Snapshot, Snapshots
from odradek.protocol.errors import ErrorCode
from tests.effort import examples
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import batch, create, produce
from tests.handlers.test_create_partitions import grow
from tests.handlers.test_delete_records import delete
from tests.handlers.transactional_batches import ProducingProducer
from tests.testing.snapshots.changes import PROPERTIES, cleaned_here, configure, delete_topic
from tests.testing.snapshots.observed import observed
from tests.wire import Wire

TOPICS = ("a", "b", "c")
SEGMENT = {"segment_bytes": "1048576", "retention_bytes": "-1"}


class Snapshotting(RuleBasedStateMachine):
    """A broker, and what was seen of it at each snapshot. `sequences` are those of a living idempotent producer."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.taken: list[tuple[Snapshot, dict[str, Any]]] = []
        self.sequences: dict[tuple[bytes, int], int] = {}
        self.counter = 0
        self.transaction: ProducingProducer | None = None

    @initialize()
    def start(self) -> None:
        self.broker = Broker(PROPERTIES)
        self.run(self.broker.start())
        self.snapshots = Snapshots(self.broker)
        self.wire = Wire("127.0.0.1", self.broker.port)
        self.run(self.wire.__aenter__())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def partitions(self, topic: str) -> int:
        found = self.broker.services.metadata.image.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    @property
    def existing(self) -> list[str]:
        return [topic for topic in TOPICS if self.partitions(topic)]

    # ---------------------------------------------------------------------------------------------------------- actions

    @rule(topic=st.sampled_from(TOPICS), partitions=st.integers(1, 3))
    def create_topic(self, topic: str, partitions: int) -> None:
        if not self.partitions(topic):
            self.run(create(self.wire, topic, partitions, **SEGMENT))

    @precondition(lambda self: self.existing)
    @rule(data=st.data())
    def delete_topic(self, data: st.DataObject) -> None:
        self.run(delete_topic(self.wire, data.draw(st.sampled_from(self.existing))))

    @precondition(lambda self: self.existing)
    @rule(data=st.data(), size=st.sampled_from([1, 5_000, 70_000, 400_000]), count=st.integers(1, 4))
    def append(self, data: st.DataObject, size: int, count: int) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        index = data.draw(st.integers(0, self.partitions(topic) - 1))
        for _ in range(count):
            self.counter += 1
            value = b"%d" % self.counter + b"." * size
            assert self.run(produce(self.wire, topic, batch(value), index)).error_code == ErrorCode.NONE

    @precondition(lambda self: self.existing)
    @rule(data=st.data())
    def append_as_living_producer(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        key = self.broker.services.metadata.image.topics[topic].topic_id, 0
        sequence = self.sequences.get(key, 0)
        self.sequences[key] = sequence + 1
        made = batch(b"idempotent", producer_id=900, producer_epoch=0, base_sequence=sequence)
        assert self.run(produce(self.wire, topic, made)).error_code == ErrorCode.NONE

    @precondition(lambda self: self.existing)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        end = self.broker.services.partitions.get(topic, 0).high_watermark
        row = self.run(delete(self.wire, topic, data.draw(st.integers(0, end))))
        assert row.error_code == ErrorCode.NONE

    @precondition(lambda self: self.existing)
    @rule(data=st.data(), size=st.sampled_from(["0", "500000", "-1"]))
    def retain(self, data: st.DataObject, size: str) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        self.run(configure(self.wire, 2, topic, retention_bytes=size))
        self.run(self.broker.periodic_tasks.retention.run())

    @precondition(lambda self: self.existing)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        configs = {"cleanup_policy": "compact,delete", "min_cleanable_dirty_ratio": "0.0"}
        self.run(configure(self.wire, 2, topic, **configs))
        self.broker.services.partitions.get(topic, 0).log.roll()
        self.broker.periodic_tasks.compaction.cleaner.run_once(cleaned_here, CleanerSettings())

    @precondition(lambda self: self.existing)
    @rule(data=st.data())
    def add_partition(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        if self.partitions(topic) < 5:
            assert self.run(grow(self.wire, topic, self.partitions(topic) + 1)).error_code == ErrorCode.NONE

    @precondition(lambda self: self.existing)
    @rule(data=st.data(), offset=st.integers(0, 9), group=st.sampled_from(["g", "h"]))
    def commit_offset(self, data: st.DataObject, offset: int, group: str) -> None:
        self.run(find_coordinator(self.wire, group))
        topic = data.draw(st.sampled_from(self.existing))
        assert self.run(GroupMember(self.wire, group).commit(topic, offset)) is ErrorCode.NONE

    @precondition(lambda self: self.existing and self.transaction is None)
    @rule(data=st.data(), is_new=st.booleans())
    def begin_transaction(self, data: st.DataObject, is_new: bool) -> None:
        topic = data.draw(st.sampled_from(self.existing))
        producer = self.transaction = ProducingProducer(self.wire, is_new=is_new)
        self.run(producer.start())
        if not is_new:
            self.run(producer.add_partition(topic, 0))
        assert self.run(producer.produce(topic, b"in a transaction")).error_code == ErrorCode.NONE

    @precondition(lambda self: self.transaction is not None)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        producer, self.transaction = self.transaction, None
        assert producer is not None
        self.run(producer.finish(commit=commit))

    # -------------------------------------------------------------------------------------------------------- snapshots

    @rule()
    def take(self) -> None:
        if len(self.taken) < 4:
            snapshot = self.run(self.snapshots.snapshot())
            self.taken.append((snapshot, self.run(observed(self.broker))))

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        snapshot, seen = data.draw(st.sampled_from(self.taken))
        self.run(self.snapshots.restore(snapshot))
        self.run(self.wire.__aexit__(None, None, None))
        self.wire = Wire("127.0.0.1", self.broker.port)
        self.run(self.wire.__aenter__())
        self.transaction = None
        assert self.run(observed(self.broker)) == seen

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))[0].discard()

    def teardown(self) -> None:
        self.run(self.wire.__aexit__(None, None, None))
        self.run(self.broker.stop())
        self.runner.close()


TestSnapshots = Snapshotting.TestCase
TestSnapshots.settings = examples(15)
TestSnapshots.pytestmark = [pytest.mark.slow]
