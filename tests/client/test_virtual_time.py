"""Simulated tests fail if a task spins or if one of the client is left."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import Consumer
from tests.client import virtual_time
from tests.client.scripted_network import ScriptedNetwork
from tests.client.virtual_time import SpinningError, simulated


def test_a_task_that_yields_but_never_waits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    @simulated
    async def spin() -> None:
        asyncio.get_running_loop().call_later(1, print)
        while True:  # noqa: ASYNC110 - that is the fault
            await asyncio.sleep(0)

    monkeypatch.setattr(virtual_time, "MOST_TURNS", 1000)
    with pytest.raises(SpinningError, match=r"1000 turns at 0\.0 s"):
        spin()


def test_a_task_whose_awaits_never_yield_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once() -> None:
        pass

    @simulated
    async def spin() -> None:
        while True:
            await at_once()

    monkeypatch.setattr(virtual_time, "MOST_SECONDS", 0.05)
    with pytest.raises(SpinningError, match=r"one turn took 0\.05 s"):
        spin()


def test_a_task_of_the_client_that_is_left_is_found() -> None:
    async def leave(network: ScriptedNetwork) -> None:
        consumer = Consumer(network.bootstrap, network=network)
        await consumer.start()
        consumer.assign([("t", 0)])
        await consumer.poll(timeout_ms=10)

    async def close(network: ScriptedNetwork) -> None:
        async with Consumer(network.bootstrap, network=network) as consumer:
            consumer.assign([("t", 0)])
            await consumer.poll(timeout_ms=10)

    def network() -> Any:
        made = ScriptedNetwork()
        made.create("t")
        return made

    with pytest.raises(AssertionError, match="the test leaves"):
        simulated(leave)(network())
    simulated(close)(network())
