"""A night with etcd: restored from a backup, then emptied under a running broker."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.peers import etcd, odradek
from tests.peers.server import NotStartedError, Server
from tests.wire import Wire

pytestmark = etcd.MARKS


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[etcd.Cluster]:
    cluster = etcd.prepare(tmp_path, 1)
    try:
        yield cluster.start()
    finally:
        cluster.kill()


@pytest.fixture
def broker(tmp_path: Path, cluster: etcd.Cluster) -> Iterator[Server]:
    broker = odradek.prepare(tmp_path / "broker", {"metadata.etcd.endpoints": cluster.endpoints[0]})
    yield broker
    if hasattr(broker, "process") and broker.process.poll() is None:
        broker.kill()


def _metadata(broker: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    config = broker.log_dir.parent / "server.properties"
    command = [sys.executable, "-m", "odradek", "metadata", *arguments, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


async def _produce(broker: Server, topic: str) -> None:
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, topic)
        await produce(wire, topic, batch(topic.encode()))


async def _values(broker: Server, topic: str) -> list[bytes | None]:
    async with Wire("127.0.0.1", broker.port) as wire:
        return values_in(await fetch(wire, topic))


def _replace_data(cluster: etcd.Cluster, backup: Path | None) -> None:
    """Start etcd with the data of a backup, or with none."""
    [member] = cluster.members
    member.kill()
    shutil.rmtree(member.log_dir)
    if backup is not None:
        shutil.copytree(backup, member.log_dir)
    member.start()


def _refusal(broker: Server) -> str:
    with pytest.raises(NotStartedError, match="ended with 1"):
        broker.start()
    return broker.printed().splitlines()[-1]


def _topics_on_disk(broker: Server) -> set[str]:
    """The topics that have a directory, whatever it was renamed to."""
    return {each.name.partition("-")[0] for each in broker.log_dir.iterdir() if each.is_dir()}


async def _frozen(broker: Server) -> str:
    """Return what the broker reports, when it reports that something is wrong."""

    def page() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/readyz", timeout=10) as response:
            text: str = response.read().decode()
        return text

    async with asyncio.timeout(120):
        while (text := await asyncio.to_thread(page)) == "ready\n":  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)
    return text


async def test_an_operator_gets_through_a_restored_and_an_emptied_etcd(
    tmp_path: Path, cluster: etcd.Cluster, broker: Server
) -> None:
    [member] = cluster.members
    broker.start()
    await _produce(broker, "early")
    member.kill()
    backup = shutil.copytree(member.log_dir, tmp_path / "backup")
    member.start()
    broker.stop()
    broker.start()
    await _produce(broker, "late")
    broker.stop()

    # The backup is restored: the broker is refused, until an operator accepts it.
    _replace_data(cluster, Path(backup))
    assert "it is an older copy" in (refusal := _refusal(broker))  # by the revision, or by the epoch of the broker
    assert "`odradek metadata accept-backup`" in refusal
    shown = _metadata(broker, "show")
    assert (shown.returncode, shown.stdout.splitlines()[-1][:44]) == (1, "A broker with this configuration is refused:")
    asked = _metadata(broker, "accept-backup")
    assert (asked.returncode, asked.stdout.splitlines()[-1]) == (0, "Nothing was changed. --yes does it.")
    assert "1 log (late-0)" in asked.stdout
    accepted = _metadata(broker, "accept-backup", "--yes")
    assert (accepted.returncode, accepted.stdout.splitlines()[-1]) == (0, "Done: the broker may start.")
    broker.start()
    assert await _values(broker, "early") == [b"early"]
    await _produce(broker, "third")

    # etcd loses everything under the running broker, which goes on, but does not start again.
    _replace_data(cluster, None)
    assert "has no cluster under /odradek/v1 any more" in await _frozen(broker)
    assert await _values(broker, "early") == [b"early"]
    broker.stop()
    assert "`odradek metadata create-cluster`" in _refusal(broker)

    # Without a backup, the broker makes topics of its logs.
    created = _metadata(broker, "create-cluster", "--adopt-topics", "--yes")
    assert (created.returncode, created.stdout.splitlines()[-1]) == (0, "Done: the broker may start.")
    broker.start()
    assert [await _values(broker, topic) for topic in ("early", "third")] == [[b"early"], [b"third"]]
    assert _topics_on_disk(broker) == {"early", "late", "third"}
    named = _metadata(broker, "dump", "topics/names/").stdout.splitlines()
    assert {"early", "third"} <= {line.partition("/names/")[2].partition('"')[0] for line in named}
