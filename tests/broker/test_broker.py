from __future__ import annotations

import asyncio
import gc
import os
import shutil
import threading
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.administration.topics import delete_topic
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.requests import batch, create, fetch, fetch_request, new_producer_id, produce, values_in
from tests.wire import Wire

LARGE = b"x" * 100_000


def properties(directory: Path, **others: str) -> Mapping[str, str]:
    return {"log.dirs": str(directory)} | {name.replace("_", "."): value for name, value in others.items()}


def exists(path: Path) -> bool:
    return path.exists()


def forget_clean_stop(directory: Path) -> None:
    (directory / ".kafka_cleanshutdown").unlink()


def open_files() -> Counter[str]:
    """The open files by descriptor and name; of pipes only the number: librdkafka replaces one each time it tries."""
    links = [(link.name, str(link.readlink())) for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return Counter("pipe" if name.startswith("pipe:") else f"{number} {name}" for number, name in links)


async def test_it_serves_from_start_to_stop() -> None:
    broker = Broker()
    await broker.start()
    async with Wire("127.0.0.1", broker.port) as wire:
        assert (await wire.ask(MetadataRequest([]), 12)).brokers[0].node_id == 1
        await broker.stop()
        assert await wire.is_closed_by_peer()

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", broker.port)


async def test_clients_connect_to_bootstrap() -> None:
    async with Broker({"listeners": "PLAINTEXT://0.0.0.0:0"}) as broker:
        assert broker.bootstrap == f"127.0.0.1:{broker.port}"


async def test_several_brokers_run_in_one_interpreter() -> None:
    async with Broker() as first, Broker({"node.id": "2"}) as second:
        for broker, node_id in ((first, 1), (second, 2)):
            async with Wire("127.0.0.1", broker.port) as wire:
                await create(wire, f"of-{node_id}")
                response = await wire.ask(MetadataRequest(None), 12)
                assert [node.node_id for node in response.brokers] == [node_id]
                assert [topic.name for topic in response.topics] == [f"of-{node_id}"]


async def test_stopping_leaves_nothing_behind() -> None:
    async with Broker() as broker:  # once, to create everything that is created once
        pass
    gc.collect()
    tasks, threads, files = asyncio.all_tasks(), set(threading.enumerate()), open_files()

    async with Broker({"metrics.port": "0"}) as broker:
        directory = Path(broker.config.log_dirs[0])
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "t", flush_messages="1")
            await produce(wire, "t", batch(b"a"))
            await produce(wire, "t", batch(LARGE))
            await wire.send(fetch_request("t", 2, max_wait_ms=60_000), 12)

    gc.collect()
    assert not exists(directory)
    assert asyncio.all_tasks() == tasks
    assert set(threading.enumerate()) == threads
    assert open_files() == files


async def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path / "taken")) as other:
        port = other.port
        tasks, threads, files = asyncio.all_tasks(), set(threading.enumerate()), open_files()

        with pytest.raises(OSError, match="cannot listen"):
            await Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}).start()
        with pytest.raises(LogDirRefusedError):
            await Broker(properties(tmp_path / "taken")).start()

        assert asyncio.all_tasks() == tasks
        assert set(threading.enumerate()) == threads
        assert open_files() == files


async def test_records_and_topics_survive_a_restart(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        topic_id = await create(wire, "t", 2, max_message_bytes="5000")
        await produce(wire, "t", batch(b"a", b"b"), 1)

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        [topic] = (await wire.ask(MetadataRequest(None), 12)).topics
        assert (topic.topic_id, len(topic.partitions)) == (topic_id, 2)
        row = await fetch(wire, "t", partition=1)
        assert (row.high_watermark, values_in(row)) == (2, [b"a", b"b"])
        assert broker.services.partitions.get("t", 1).log.config.max_message_bytes == 5000
        assert (await produce(wire, "t", batch(b"c"), 1)).base_offset == 2


async def test_idempotent_producers_survive_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()  # a producer expires a day after the timestamp of its last record
    async with Broker(properties(tmp_path), clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        producer_id = await new_producer_id(wire)
        first = batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        await produce(wire, "t", first)

    async with Broker(properties(tmp_path), clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert (await produce(wire, "t", first)).base_offset == 0
        after_gap = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=5)
        assert (await produce(wire, "t", after_gap)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_a_directory_of_another_node_or_cluster_is_refused_with_both_ids(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker:
        cluster_id = broker.services.metadata.image.cluster_id

    with pytest.raises(LogDirRefusedError, match=r"node 1\b.*node 7\b"):
        await Broker(properties(tmp_path, node_id="7")).start()
    other = "MkU3OEVBNTcwNTJENDM2Qg"
    with pytest.raises(LogDirRefusedError, match=f"{cluster_id}.*{other}"):
        await Broker(properties(tmp_path, cluster_id=other)).start()
    async with Broker(properties(tmp_path)):
        pass


async def test_the_log_of_a_deleted_topic_is_deleted_by_the_next_start(tmp_path: Path) -> None:
    """As after a crash between the change of the metadata and that of the directory."""
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"old"))
        shutil.copytree(tmp_path / "t-0", tmp_path / "kept")
        await delete_topic(broker.services.metadata, name="t")
    (tmp_path / "kept").rename(tmp_path / "t-0")

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await broker.services.partitions.settled()
        assert not (tmp_path / "t-0").exists()
        await create(wire, "t")
        row = await fetch(wire, "t")
        assert (row.high_watermark, values_in(row)) == (0, [])


def log_set_aside(log_dir: Path) -> bytes:
    [stray] = log_dir.glob("t-0.*-stray")
    return (stray / "00000000000000000000.log").read_bytes()


async def test_a_log_without_a_topic_is_kept_under_another_name_when_a_topic_takes_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(properties(tmp_path / "other")) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"of another broker"))
    async with Broker(properties(tmp_path)):
        pass
    (tmp_path / "other" / "t-0").rename(tmp_path / "t-0")

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert "logs without a topic count=1 first=t-0" in caplog.text
        await create(wire, "t")
        row = await fetch(wire, "t")
        assert (row.high_watermark, values_in(row)) == (0, [])
    assert b"of another broker" in log_set_aside(tmp_path)
    async with Broker(properties(tmp_path)) as broker:
        assert list(broker.log_dir.logs) == [("t", 0)]


async def test_requests_in_flight_are_answered_before_the_stop() -> None:
    """One fetch is parked; the other waits for its turn, and would be parked then."""
    broker = Broker()
    await broker.start()
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        request = fetch_request("t", max_wait_ms=60_000)
        for _ in range(2):
            await wire.send(request, 12)
        while not len(broker.services.fetch_purgatory):  # noqa: ASYNC110 - a turn of the loop, not a pause
            await asyncio.sleep(0)

        await broker.stop()

        for _ in range(2):
            response = await wire.receive(request, 12)
            assert response.responses[0].partitions[0].error_code == ErrorCode.NONE


async def test_a_failing_disk_takes_everything_offline_and_the_broker_with_it() -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        partition = broker.services.partitions.get("t", 0)
        broker.log_dir.failure.fail("testing", OSError(5, "Input/output error"))
        await asyncio.wait_for(broker.failed.wait(), 60)

        assert (await produce(wire, "t", batch(b"a"))).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await fetch(wire, "t")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await fetch(wire, "t", version=5)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert partition.offline


async def test_after_a_failing_disk_nothing_is_marked_clean(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker:
        broker.log_dir.failure.fail("testing", OSError(5, "Input/output error"))
        await asyncio.wait_for(broker.failed.wait(), 60)

    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    async with Broker(properties(tmp_path)):
        pass
    assert (tmp_path / ".kafka_cleanshutdown").exists()


async def test_a_cancelled_start_releases_the_directory(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 20)
        for index in range(20):
            await produce(wire, "t", batch(LARGE), index)
    forget_clean_stop(tmp_path)
    threads = set(threading.enumerate())

    starting = asyncio.create_task(Broker(properties(tmp_path)).start())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert set(threading.enumerate()) == threads
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "t", partition=19)) == [LARGE]


async def test_its_state_is_served_over_http() -> None:
    def get(path: str) -> tuple[int, str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}{path}") as response:
            return response.status, response.read().decode()

    async with Broker({"metrics.port": "0"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 3)
        await produce(wire, "t", batch(b"a", b"b"))

        assert await asyncio.to_thread(get, "/healthz") == (200, "ok\n")
        assert await asyncio.to_thread(get, "/readyz") == (200, "ready\n")
        _, page = await asyncio.to_thread(get, "/metrics")

    samples = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert samples["kafka_server_kafkaserver_brokerstate"] == "3.0"
    assert samples["kafka_server_replicamanager_leadercount"] == "3.0"
    assert samples['kafka_server_brokertopicmetrics_messagesin_total{topic="t"}'] == "2.0"
    assert samples['kafka_log_log_logendoffset{partition="0",topic="t"}'] == "2.0"
    assert float(samples["process_open_fds"]) > 0
    assert samples["kafka_controller_kafkacontroller_activecontrollercount"] == "1.0"


@pytest.mark.slow
async def test_a_start_reads_no_log_of_a_thousand_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 1000)
        await produce(wire, "t", batch(b"a"), 999)
    files = len(open_files())

    opened: list[str] = []
    os_open = os.open

    def recorded_open(path: str | Path, *how: int) -> int:
        opened.append(str(path))
        return os_open(path, *how)

    monkeypatch.setattr(os, "open", recorded_open)
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        [topic] = (await wire.ask(MetadataRequest(None), 12)).topics

        assert len(topic.partitions) == 1000
        assert [path for path in opened if path.endswith((".log", "index"))] == []
        assert len(open_files()) < files + 50
        assert values_in(await fetch(wire, "t", partition=999)) == [b"a"]


def test_a_configuration_may_be_loaded_before() -> None:
    config = BrokerConfig.load(None, {"log.dirs": "/nowhere", "listeners": "PLAINTEXT://127.0.0.1:0"})

    assert Broker(config).config is config
