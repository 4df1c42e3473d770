"""Every public coroutine, cancelled at each of its awaits: no task and no connection stays, and the client still works.

In virtual time, with eager tasks (Python 3.12), and on uvloop, but for members of groups, which wait for heartbeats.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal

import pytest
import uvloop

from odradek.client import Admin, Consumer, OffsetSpec, Producer, RebalanceListener
from odradek.client.record import TopicPartition
from tests.client.cancellation import check_every_await, is_cancelled
from tests.client.reading import fill
from tests.client.scripted_groups import GroupCoordinator
from tests.client.scripted_network import ScriptedNetwork
from tests.client.virtual_time import VirtualTimeLoop

Client = Producer | Consumer | Admin
PLACE = TopicPartition("t", 1)


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "virtual time": VirtualTimeLoop,
    "uvloop": uvloop.new_event_loop,
}

if sys.version_info >= (3, 12):

    def eager_loop() -> asyncio.AbstractEventLoop:
        loop = VirtualTimeLoop()
        loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    LOOPS["eager tasks"] = eager_loop


def network_for(operate: Any) -> ScriptedNetwork:
    groups = GroupCoordinator(heartbeat_interval_ms=5) if operate is share else None
    network = ScriptedNetwork(brokers=2, transaction_version=2, groups=groups)
    for log in network.create("t", 2) + network.create("u", 1):
        fill(log, 10)
    return network


def producer(network: ScriptedNetwork) -> Producer:
    return Producer(network.bootstrap, network=network, linger_ms=1, retry_backoff_ms=1)


def transactional(network: ScriptedNetwork) -> Producer:
    return Producer(network.bootstrap, network=network, linger_ms=1, retry_backoff_ms=1, transactional_id="id")


def consumer(network: ScriptedNetwork) -> Consumer:
    return Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", fetch_max_wait_ms=5, retry_backoff_ms=1
    )


def member(network: ScriptedNetwork, protocol: Literal["classic", "consumer"], assignor: str) -> Consumer:
    return Consumer(
        network.bootstrap,
        network=network,
        group_id="g",
        group_protocol=protocol,
        partition_assignment_strategy=assignor,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1,
        heartbeat_interval_ms=5,
        fetch_max_wait_ms=5,
        retry_backoff_ms=1,
    )


def eager_member(network: ScriptedNetwork) -> Consumer:
    return member(network, "classic", "range")


def cooperative_member(network: ScriptedNetwork) -> Consumer:
    return member(network, "classic", "cooperative-sticky")


def consumer_member(network: ScriptedNetwork) -> Consumer:
    return member(network, "consumer", "range")


def admin(network: ScriptedNetwork) -> Admin:
    return Admin(network.bootstrap, network=network, retry_backoff_ms=1)


async def send(client: Producer) -> None:
    await (await client.send("t", b"1", partition=0))


async def send_and_wait(client: Producer) -> None:
    await client.send_and_wait("t", b"1", partition=1)


async def flush(client: Producer) -> None:
    await client.send("t", b"1")
    await client.flush()


async def transaction(client: Producer) -> None:
    async with client.transaction():
        await client.send_and_wait("t", b"1")


async def poll(client: Consumer) -> None:
    client.assign([("t", 0), PLACE])
    client.seek(PLACE, 5)
    assert await client.poll()


async def iterate(client: Consumer) -> None:
    client.assign([PLACE])
    client.seek(PLACE, 0)
    async for record in client:
        if record.offset == 9:
            return


async def positions(client: Consumer) -> None:
    client.assign(await client.partitions_for("t"))
    await client.seek_to_beginning()
    assert await client.position(PLACE) == 0
    await client.seek_to_end(PLACE)
    assert await client.position(PLACE) == 10
    await client.seek_to_timestamp(5)
    assert await client.position(PLACE) == 5


async def lookups(client: Consumer) -> None:
    assert await client.beginning_offsets([PLACE]) == {PLACE: 0}
    assert await client.end_offsets([PLACE]) == {PLACE: 10}
    assert (await client.offsets_for_times({PLACE: 5}))[PLACE] is not None


class Listener(RebalanceListener):
    """Waits in each call, as one does that stores something."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(0)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(0)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(0)


async def share(client: Consumer) -> None:
    await client.subscribe("t", Listener())
    await until_assigned(client, [("t", 0), PLACE])
    await client.commit({PLACE: 3})
    await client.subscribe(["t", "u"], Listener())
    await until_assigned(client, [("t", 0), PLACE, ("u", 0)])
    await client.subscribe("u", Listener())
    await until_assigned(client, [("u", 0)])
    await client.commit()
    await client.committed([PLACE])
    await client.unsubscribe()


async def until_assigned(client: Consumer, partitions: list[tuple[str, int]]) -> None:
    while client.assignment() != partitions:
        await client.poll(timeout_ms=100)


async def admin_calls(client: Admin) -> None:
    assert (await client.list_offsets({PLACE: OffsetSpec.LATEST})).value(PLACE).offset == 10
    await client.list_topics()


SCENARIOS: list[tuple[Callable[[ScriptedNetwork], Any], Callable[[Any], Coroutine[Any, Any, None]]]] = [
    (producer, send),
    (producer, send_and_wait),
    (producer, flush),
    (transactional, transaction),
    (consumer, poll),
    (consumer, iterate),
    (consumer, positions),
    (consumer, lookups),
    (eager_member, share),
    (cooperative_member, share),
    (consumer_member, share),
    (admin, admin_calls),
]
ON_EACH_LOOP = pytest.mark.parametrize(
    ("client_of", "operate", "loop"),
    [
        pytest.param(client, operate, loop, id=f"{loop}-{client.__name__}-{operate.__name__}")
        for loop in LOOPS
        for client, operate in SCENARIOS
        if loop != "uvloop" or operate is not share  # which waits for heartbeats, in real time
    ],
)


def run(loop: str, scenario: Callable[[int], Coroutine[Any, Any, bool]]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(check_every_await(scenario))


def check_disconnected(network: ScriptedNetwork, at: int) -> None:
    assert not any(broker.transports for broker in network.brokers.values()), at


@ON_EACH_LOOP
def test_a_whole_life_that_is_cancelled_leaves_nothing(client_of: Any, operate: Any, loop: str) -> None:
    async def scenario(at: int) -> bool:
        network = network_for(operate)

        async def live() -> None:
            async with client_of(network) as client:
                await operate(client)

        goes_on = await is_cancelled(live(), at)
        check_disconnected(network, at)
        return goes_on

    run(loop, scenario)


@ON_EACH_LOOP
def test_after_a_cancelled_call_the_next_one_works(client_of: Any, operate: Any, loop: str) -> None:
    async def scenario(at: int) -> bool:
        network = network_for(operate)
        async with asyncio.timeout(60), client_of(network) as client:
            goes_on = await is_cancelled(operate(client), at)
            await operate(client)
        check_disconnected(network, at)
        return goes_on

    run(loop, scenario)
