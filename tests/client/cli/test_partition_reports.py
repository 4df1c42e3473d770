"""`topics describe` of the partitions that lack replicas or a leader, in a cluster of two brokers in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.store.memory import InMemoryStore
from tests.client.cli.commands import becomes, run, run_json


class Pair(NamedTuple):
    bootstrap: str
    other: Broker


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """Broker 1 at `bootstrap`, and broker 2, which a test may stop."""
    store = InMemoryStore()
    async with AsyncExitStack() as stack:
        brokers = []
        for node_id in (1, 2):
            properties = {"node.id": str(node_id), "log.dirs": str(tmp_path / str(node_id))}
            brokers.append(await stack.enter_async_context(Broker(properties, store=store)))
        metadata = brokers[0].services.metadata
        while len(metadata.image.brokers) < len(brokers):
            await metadata.wait_for_revision(metadata.image.revision + 1)
        yield Pair(brokers[0].bootstrap, brokers[1])
    await store.close()


async def test_partitions_without_a_leader_and_with_replicas_out_of_sync_are_listed_alone(pair: Pair) -> None:
    at = ("--bootstrap-server", pair.bootstrap)
    for topic, replicas in (("shared", "1:2"), ("alone", "2,1"), ("fine", "1")):
        await run("topics", "create", *at, "--topic", topic, "--replica-assignment", replicas)

    async def listed(flag: str) -> list[tuple[str, int]]:
        documents = await run_json("topics", "describe", *at, flag)
        return [(topic["topic"], row["partition"]) for topic in documents for row in topic["partitions"]]

    await becomes(lambda: listed("--under-replicated-partitions"), [])
    assert await run("topics", "describe", *at, "--unavailable-partitions") == ([], "")

    await pair.other.stop()

    await becomes(lambda: listed("--under-replicated-partitions"), [("shared", 0)])
    await becomes(lambda: listed("--unavailable-partitions"), [("alone", 0)])
    out, _ = await run("topics", "describe", *at, "--unavailable-partitions")
    assert out[0].split() == b"TOPIC PARTITION LEADER LEADER-EPOCH REPLICAS ISR OFFLINE-REPLICAS".split()
    assert out[1].split()[:3] == b"alone 0 -".split()
    assert len(out) == 2
    out, _ = await run("topics", "describe", *at, "--topic", "alone", "--offsets")
    assert out[1].split()[-2:] == [b"LOG-START-OFFSET", b"LOG-END-OFFSET"]  # the first partition has none


async def test_the_two_reports_exclude_each_other() -> None:
    _, err = await run("topics", "describe", "--under-replicated-partitions", "--unavailable-partitions", status=2)
    assert "not allowed with argument" in err
