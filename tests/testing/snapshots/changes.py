"""The states and the changes that the tests of snapshots put a broker into."""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import Answers, CleanerSettings
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.broker.storage.compaction.log_cleaning import LogCleaning
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import (
    batch,
    create,
    produce,
)
from tests.handlers.test_create_partitions import grow
from tests.handlers.test_delete_records import deleted
from tests.handlers.transactional_batches import ProducingProducer
from tests.wire import Wire

PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.cleaner.backoff.ms": "3600000",
    "log.retention.check.interval.ms": "3600000",
}
SMALL = {"segment_bytes": "1048576"}
LARGE = b"x" * 400_000


async def delete_topic(wire: Wire, name: str) -> None:
    [row] = (await wire.ask(DeleteTopicsRequest([DeleteTopicState(name)], timeout_ms=5000), 6)).responses
    assert row.error_code == ErrorCode.NONE


async def configure(wire: Wire, kind: int, name: str, **configs: str) -> None:
    rows = [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, rows)])
    [row] = (await wire.ask(request, 1)).responses
    assert row.error_code == ErrorCode.NONE, row


async def fill(wire: Wire, topic: str, count: int, value: bytes = LARGE, index: int = 0) -> None:
    for _ in range(count):
        assert (await produce(wire, topic, batch(value), index)).error_code == ErrorCode.NONE


# The changes between a snapshot and its restore, each of a broker with the topics `t` and `u`.


async def nothing(broker: Broker, wire: Wire) -> None:
    pass


async def appends(broker: Broker, wire: Wire) -> None:
    await fill(wire, "t", 3, b"later")
    await fill(wire, "t", 1, b"y" * 100_000, 1)


async def rolled_segments(broker: Broker, wire: Wire) -> None:
    await fill(wire, "t", 7)
    assert broker.services.partitions.get("t", 0).log.segments_count > 2


async def deletion(broker: Broker, wire: Wire) -> None:
    await delete_topic(wire, "t")


async def recreation(broker: Broker, wire: Wire) -> None:
    await delete_topic(wire, "t")
    await create(wire, "t", 5)
    await fill(wire, "t", 2, b"of another topic")


async def a_new_topic(broker: Broker, wire: Wire) -> None:
    await create(wire, "new", 3)
    await fill(wire, "new", 2, b"new")


async def deleted_records(broker: Broker, wire: Wire) -> None:
    assert await deleted(wire, "t", 2) == 2


async def retention(broker: Broker, wire: Wire) -> None:
    await configure(wire, 2, "t", retention_bytes="0")
    await fill(wire, "t", 4)
    assert await broker.periodic_tasks.retention.run() > 0
    assert broker.services.partitions.get("t", 0).log.log_start_offset > 0


async def compaction(broker: Broker, wire: Wire) -> None:
    await configure(wire, 2, "t", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    await fill(wire, "t", 6)
    log = broker.services.partitions.get("t", 0).log
    before = log.segments_count
    assert broker.periodic_tasks.compaction.cleaner.run_once(cleaned_here, CleanerSettings())
    assert log.segments_count < before


def cleaned_here(job: CleaningJob, _: CleaningState) -> Answers:
    """Compact in this process instead of another one."""
    descriptors = DescriptorCache(OsFiles(), 5)
    cleaning = LogCleaning(job, descriptors, ManualClock())
    yield from cleaning
    descriptors.close()
    yield cleaning.done


async def added_partitions(broker: Broker, wire: Wire) -> None:
    assert (await grow(wire, "t", 4)).error_code == ErrorCode.NONE
    await fill(wire, "t", 1, b"in a new partition", 3)


async def changed_configs(broker: Broker, wire: Wire) -> None:
    await configure(wire, 2, "t", retention_ms="1234", cleanup_policy="compact")
    await configure(wire, 4, "1", log_retention_ms="77777")


async def commits(broker: Broker, wire: Wire) -> None:
    await find_coordinator(wire, "g")
    await GroupMember(wire, "g").commit("t", 3)
    await GroupMember(wire, "other").commit("t", 1)


async def a_committed_transaction(broker: Broker, wire: Wire) -> None:
    producer = ProducingProducer(wire)
    await producer.start()
    assert (await producer.produce("t", b"in a transaction")).error_code == ErrorCode.NONE
    await producer.finish(commit=True)


async def an_aborted_transaction(broker: Broker, wire: Wire) -> None:
    producer = ProducingProducer(wire, is_new=False)
    await producer.start()
    await producer.add_partition("t", 0)
    assert (await producer.produce("t", b"aborted")).error_code == ErrorCode.NONE
    await producer.finish(commit=False)


async def a_member_of_the_consumer_protocol(broker: Broker, wire: Wire) -> None:
    await join_consumer_group(wire, "B" * 22)


async def join_consumer_group(wire: Wire, member_id: str) -> None:
    """Join the group `c`, which has the consumer protocol."""
    await find_coordinator(wire, "c")
    request = ConsumerGroupHeartbeatRequest(
        "c", member_id, 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert (await wire.ask(request, 1)).error_code == ErrorCode.NONE


CHANGES = [
    nothing,
    appends,
    rolled_segments,
    deletion,
    recreation,
    a_new_topic,
    deleted_records,
    retention,
    compaction,
    added_partitions,
    changed_configs,
    commits,
    a_committed_transaction,
    an_aborted_transaction,
    a_member_of_the_consumer_protocol,
]


async def prepare(wire: Wire) -> ProducingProducer:
    """Two topics with records, groups of both protocols, transactions: one committed, one aborted, one open."""
    await create(wire, "t", 2, **SMALL)
    await create(wire, "u")
    await fill(wire, "t", 5, b"before")
    await fill(wire, "t", 1, b"z" * 80_000, 1)
    await find_coordinator(wire, "g")
    assert await GroupMember(wire, "g").commit("t", 2) is ErrorCode.NONE
    await join_consumer_group(wire, "A" * 22)
    for commit in (True, False):
        producer = ProducingProducer(wire)
        await producer.start()
        assert (await producer.produce("t", b"%d" % commit)).error_code == ErrorCode.NONE
        await producer.finish(commit=commit)
    still_open = ProducingProducer(wire)
    await still_open.start()
    assert (await still_open.produce("t", b"open", index=1)).error_code == ErrorCode.NONE
    return still_open
