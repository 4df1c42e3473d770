"""Several brokers in one process, on a metadata store that they share."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.metadata.cluster_record import begin_cluster
from odradek.broker.metadata.image import ImageChange
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import DeletePrefix
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.metadata.values import ClusterRecord
from odradek.broker.storage.checkpoints.metadata_revision import read_metadata_revision
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.names import METADATA_REVISION
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire

Start = Callable[..., Awaitable[Broker]]


@pytest.fixture
async def store() -> AsyncIterator[InMemoryStore]:
    store = InMemoryStore()
    yield store
    await store.close()


@pytest.fixture
async def start(tmp_path: Path, store: InMemoryStore) -> AsyncIterator[Start]:
    """Start a broker of the cluster on a directory of its own; all are stopped at the end."""
    async with AsyncExitStack() as stack:

        async def start(node_id: int, directory: str = "", **properties: str) -> Broker:
            base = {"node.id": str(node_id), "log.dirs": str(tmp_path / (directory or str(node_id)))}
            others = {name.replace("_", "."): text for name, text in properties.items()}
            return await stack.enter_async_context(Broker(base | others, store=store))

        yield start


async def _metadata(broker: Broker, *topics: str) -> MetadataResponse:
    async with Wire("127.0.0.1", broker.port) as wire:
        return await wire.ask(MetadataRequest([MetadataRequestTopic(name=name) for name in topics]), 9)


def _page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as response:
        text: str = response.read().decode()
    return text


async def _seen_by(broker: Broker, node_id: int) -> None:
    while node_id not in broker.services.metadata.image.brokers:
        await broker.services.metadata.wait_for_revision(broker.services.metadata.image.revision + 1)


async def _seen(broker: Broker, *others: Broker) -> None:
    """Wait until a broker has the others in its image."""
    while not {other.config.node_id for other in others} <= broker.services.metadata.image.brokers.keys():
        await broker.services.metadata.wait_for_revision(broker.services.metadata.image.revision + 1)


async def test_brokers_are_one_cluster_whichever_is_asked(start: Start) -> None:
    first, second = await start(1, broker_rack="a"), await start(2, broker_rack="b")
    await _seen(first, second)

    for broker in (first, second):
        found = await _metadata(broker)
        assert [(row.node_id, row.port, row.rack) for row in found.brokers] == [
            (1, first.port, "a"), (2, second.port, "b"),
        ]  # fmt: skip
        assert (found.cluster_id, found.controller_id) == (first.log_dir.meta.cluster_id, broker.config.node_id)
    assert second.log_dir.meta.cluster_id == first.log_dir.meta.cluster_id


async def test_a_partition_is_served_by_the_broker_that_it_is_assigned_to(start: Start) -> None:
    first, second = await start(1), await start(2)
    await _seen(first, second)
    async with Wire("127.0.0.1", first.port) as wire:
        assignment = [CreatableReplicaAssignment(0, [1]), CreatableReplicaAssignment(1, [2])]
        created = await wire.ask(CreateTopicsRequest([CreatableTopic("t", -1, -1, assignment)]), 5)
        assert created.topics[0].error_code == ErrorCode.NONE
        revision = first.services.metadata.image.revision
        assert (await produce(wire, "t", batch(b"one"))).error_code == ErrorCode.NONE
        assert (await produce(wire, "t", batch(b"x"), partition=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    await second.services.metadata.wait_for_revision(revision)
    await second.services.partitions.settled()
    async with Wire("127.0.0.1", second.port) as wire:
        assert (await produce(wire, "t", batch(b"two"), partition=1)).error_code == ErrorCode.NONE
        assert values_in(await fetch(wire, "t", partition=1)) == [b"two"]
        assert (await fetch(wire, "t")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    found = await _metadata(second, "t")
    assert [row.leader_id for row in found.topics[0].partitions] == [1, 2]


async def test_a_broker_that_stops_leads_no_more_and_leads_again_when_it_returns(
    tmp_path: Path, store: InMemoryStore, start: Start
) -> None:
    first = await start(1)
    async with Broker({"node.id": "2", "log.dirs": str(tmp_path / "2")}, store=store) as second:
        await _seen(first, second)
        async with Wire("127.0.0.1", first.port) as wire:
            await wire.ask(CreateTopicsRequest([CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [2])])]), 5)
        await second.services.metadata.wait_for_revision(first.services.metadata.image.revision)
        await second.services.partitions.settled()
        async with Wire("127.0.0.1", second.port) as wire:
            assert (await produce(wire, "t", batch(b"kept"))).error_code == ErrorCode.NONE

    while (found := await _metadata(first, "t")).topics[0].partitions[0].leader_id != -1:
        pass
    assert [row.node_id for row in found.brokers] == [1]

    second = await start(2)
    async with Wire("127.0.0.1", second.port) as wire:
        assert values_in(await fetch(wire, "t")) == [b"kept"]


async def test_a_broker_without_a_topic_that_was_deleted_meanwhile_deletes_its_log(
    tmp_path: Path, store: InMemoryStore, start: Start
) -> None:
    first = await start(1)
    async with Broker({"node.id": "2", "log.dirs": str(tmp_path / "2")}, store=store) as second:
        await _seen(first, second)
        async with Wire("127.0.0.1", first.port) as wire:
            await wire.ask(CreateTopicsRequest([CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [2])])]), 5)
        await second.services.metadata.wait_for_revision(first.services.metadata.image.revision)
        await second.services.partitions.settled()
        assert list(second.log_dir.logs) == [("t", 0)]
    await delete_topic(first.services.metadata, name="t")

    second = await start(2)
    await second.services.partitions.settled()
    assert not second.log_dir.logs
    assert len(second.log_dir.deletions) == 1


async def test_a_directory_of_another_cluster_is_refused(tmp_path: Path, store: InMemoryStore, start: Start) -> None:
    async with Broker({"node.id": "2", "log.dirs": str(tmp_path / "2")}):
        pass
    with pytest.raises(RegistrationError, match="the metadata store has no cluster"):
        await start(2)
    await start(1)

    with pytest.raises(RegistrationError, match=r"has cluster .* are of cluster"):
        await start(2)


async def test_a_broker_is_registered_as_running_when_its_sockets_listen(store: InMemoryStore, start: Start) -> None:
    """Else followers and clients that find it in the image are refused."""
    first = await start(1)
    connected: list[bool] = []

    def connect(change: ImageChange) -> None:
        broker = change.after.brokers.get(2)
        if broker is not None and not connected:
            with socket.socket() as probe:
                connected.append(probe.connect_ex((broker.listeners[0].host, broker.listeners[0].port)) == 0)

    first.services.metadata.on_change(connect)

    await start(2)

    await _seen_by(first, 2)
    assert connected == [True]


async def test_brokers_serve_on_while_the_metadata_are_gone(tmp_path: Path, store: InMemoryStore, start: Start) -> None:
    """As after `etcdctl del --prefix`: nothing is unserved, nothing on disk changes, `/readyz` has the reason."""
    broker = await start(1, metrics_port="0")
    metadata = broker.services.metadata
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"before"))
        directories = {each.name for each in (tmp_path / "1").iterdir() if each.is_dir()}

        await store.txn((), (DeletePrefix(metadata.keys.prefix),))
        with time_limit(500), pytest.raises(KafkaError, match="did not answer in time"):
            await create_topic(metadata, "another")

        assert (await produce(wire, "t", batch(b"after"))).error_code == ErrorCode.NONE
        assert values_in(await fetch(wire, "t")) == [b"before", b"after"]
        found = await _metadata(broker, "t")
        assert [row.leader_id for row in found.topics[0].partitions] == [1]
    assert {each.name for each in (tmp_path / "1").iterdir() if each.is_dir()} == directories
    page = await asyncio.to_thread(_page, broker.metrics_port, "readyz")
    assert page == (
        "ready, but the metadata are frozen: the metadata store has no cluster under /odradek/v1 any more\n"
    )
    assert broker.metrics.metadata_store.freezes == 1
    assert not broker.failed.is_set()


async def test_a_store_that_is_older_than_the_directories_takes_no_broker(tmp_path: Path, store: InMemoryStore) -> None:
    properties = {"node.id": "1", "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    async with Broker(properties, store=store) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        seen = broker.services.metadata.image.revision
    for name in ("a", "b"):
        assert read_metadata_revision(OsFiles(), str(tmp_path / name)) >= (seen, broker.services.metadata.broker_epoch)
    older = InMemoryStore()
    await begin_cluster(older, Keys(), ClusterRecord(broker.log_dir.meta.cluster_id, 0), adopts=False)

    with pytest.raises(RegistrationError, match=r"at revision 1, .* have seen \d+: .*accept-backup"):
        async with Broker(properties, store=older):
            pass

    assert [each.key for each in (await older.range(b""))[0]] == [Keys().cluster]


async def test_a_broker_that_stopped_before_it_served_under_its_last_epoch_starts_again(
    tmp_path: Path, store: InMemoryStore
) -> None:
    """The store keeps no epoch of a registration that never served: it is not an older copy."""
    properties = {"node.id": "1", "log.dirs": str(tmp_path / "1")}
    async with Broker(properties, store=store) as broker:
        metadata, registered = broker.services.metadata, asyncio.Event()
        first, never = metadata.broker_epoch, asyncio.Event()
        metadata.before_serving.append(lambda: asyncio.wait_for(never.wait(), None))
        metadata.on_broker_epoch.append(lambda _: registered.set())
        ((kv, *_), _) = await store.range(metadata.keys.broker_id(1))
        await store.revoke(kv.lease)
        await registered.wait()
        assert metadata.broker_epoch > first

    async with Broker(properties, store=store) as broker:
        assert broker.services.metadata.broker_epoch > metadata.broker_epoch


async def test_a_log_with_a_later_leader_epoch_than_the_store_takes_no_broker(
    tmp_path: Path, store: InMemoryStore, start: Start
) -> None:
    """The store is an older copy, whatever its revision: two leaders would write under one epoch."""
    properties = {"node.id": "1", "log.dirs": str(tmp_path / "1")}
    async with Broker(properties, store=store) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"value"))
    (tmp_path / "1" / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")

    with pytest.raises(RegistrationError, match=r"leader epoch 0 of t-0, but its log has 3: it is an older copy"):
        await start(1)


async def test_a_broker_of_a_cluster_does_not_start_without_its_store(tmp_path: Path, start: Start) -> None:
    """It would take its logs for those of a broker alone, and lead all of them."""
    properties = {"node.id": "1", "log.dirs": str(tmp_path / "1")}
    broker = await start(1)
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
    await broker.stop()

    with pytest.raises(
        RegistrationError, match=rf"of cluster {broker.log_dir.meta.cluster_id}.*metadata.etcd.endpoints"
    ):
        async with Broker(properties):
            pass

    async with Broker(properties, read_only=True) as reader:
        assert list(reader.log_dirs.logs) == [("t", 0)]
    (tmp_path / "1" / METADATA_REVISION).unlink()
    async with Broker(properties) as alone:
        assert list(alone.services.metadata.image.topics) == ["t"]


async def test_a_broker_alone_stores_no_revision(tmp_path: Path) -> None:
    async with Broker({"log.dirs": str(tmp_path)}):
        pass

    assert not (tmp_path / METADATA_REVISION).exists()


async def test_the_offsets_topic_needs_its_full_replication_factor(start: Start) -> None:
    first, second = await start(1), await start(2)
    await _seen(first, second)
    async with Wire("127.0.0.1", first.port) as wire:
        found = await wire.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        assert found.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        third = await start(3)
        await _seen(first, third)
        found = await wire.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        assert found.coordinators[0].error_code == ErrorCode.NONE
    partitions = first.services.metadata.image.topics["__consumer_offsets"].partitions
    assert {len(each.replicas) for each in partitions} == {3}


async def test_a_broker_that_is_down_is_fenced_until_it_is_unregistered(
    tmp_path: Path, store: InMemoryStore, start: Start
) -> None:
    first = await start(1)
    async with Broker({"node.id": "2", "log.dirs": str(tmp_path / "2"), "broker.rack": "b"}, store=store) as second:
        await _seen(first, second)
        port = second.port
    while 2 in first.services.metadata.image.brokers:
        await first.services.metadata.wait_for_revision(first.services.metadata.image.revision + 1)

    async def described(wire: Wire, *, fenced: bool) -> list[tuple[int, int, str | None, bool]]:
        found = await wire.ask(DescribeClusterRequest(include_fenced_brokers=fenced), 2)
        return [(row.broker_id, row.port, row.rack, row.is_fenced) for row in found.brokers]

    async with Wire("127.0.0.1", first.port) as wire:
        assert await described(wire, fenced=False) == [(1, first.port, None, False)]
        assert await described(wire, fenced=True) == [(1, first.port, None, False), (2, port, "b", True)]
        assert (await wire.ask(UnregisterBrokerRequest(2), 0)).error_code == ErrorCode.NONE
        assert await described(wire, fenced=True) == [(1, first.port, None, False)]
