"""One run: three users of a group, faults for a minute, and then a time without any, in which everything must settle.

In the end every partition has one owner, which is subscribed to it, every record was returned, and nothing of a closed
consumer goes on.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from tests.client.reading import fill
from tests.client.scripted_groups import GroupCoordinator
from tests.client.scripted_network import ScriptedNetwork
from tests.client.simulation.faults import Faults
from tests.client.simulation.invariants import GROUP, Invariants
from tests.client.simulation.user import PROTOCOLS, TOPICS, User
from tests.client.virtual_time import VirtualTimeLoop

WILD_S, SETTLING_S = 40.0, 30.0
USERS = 3


class Outcome(NamedTuple):
    """The result of a run: what was contradicted, what happened, and how much."""

    seed: int
    failures: list[str]
    trace: list[str]
    records: int
    commits: int
    assignments: int


def simulate(seed: int) -> Outcome:
    """Run a seed. Every third one has the same protocol."""
    random.seed(seed)
    ids = random.Random(f"{seed}/ids")
    with (
        mock.patch.object(uuid, "uuid4", side_effect=lambda: uuid.UUID(bytes=ids.randbytes(16))),
        asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
    ):
        return runner.run(_run(seed))


async def _run(seed: int) -> Outcome:
    loop = asyncio.get_running_loop()
    coordinator = GroupCoordinator(initial_rebalance_delay_ms=200)
    network = ScriptedNetwork(2, groups=coordinator)
    for topic, partitions in (("a", 2), ("b", 1), ("c", 1)):
        for log in network.create(topic, partitions):
            fill(log, 20)
    invariants = Invariants(coordinator)
    loop.set_exception_handler(invariants.loop_failed)
    settings = list(PROTOCOLS.values())[seed % len(PROTOCOLS)]
    users = invariants.users = [User(number, seed, network, invariants, settings) for number in range(USERS)]
    faults = Faults(seed, network, coordinator, invariants)
    watch = asyncio.create_task(invariants.watch())
    disturb = asyncio.create_task(faults.run(WILD_S))
    wanted = _last_subscriptions(seed)

    def is_over() -> bool:
        return loop.time() > max(user.settles_since for user in users) + SETTLING_S

    await _together(*(_live(user, topics, faults, is_over) for user, topics in zip(users, wanted, strict=True)))
    if not invariants.failures:
        _check_end(users, wanted, network, invariants)
    await asyncio.gather(*(user.end() for user in users))
    await _together(*(_cancelled(task) for task in (watch, disturb)))
    await asyncio.sleep(0.1)
    _check_tasks(invariants)
    if not invariants.failures and (members := coordinator.members(GROUP)):
        invariants.fail(f"after all have closed, the group has the members {members}")
    return Outcome(
        seed, invariants.failures, invariants.trace, invariants.records, invariants.commits, invariants.assignments
    )


def _last_subscriptions(seed: int) -> list[list[str]]:
    """What each user is subscribed to in the end; each topic by somebody, and some by one alone."""
    draw = random.Random(f"{seed}/topics")
    subscriptions = [["a"], ["b"], draw.choice(TOPICS)]
    draw.shuffle(subscriptions)
    return subscriptions


async def _live(user: User, topics: list[str], faults: Faults, is_over: Callable[[], bool]) -> None:
    await user.run(WILD_S)
    faults.stop()
    await user.settle(topics, is_over)


async def _together(*coroutines: Any) -> None:
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _check_end(users: list[User], wanted: list[list[str]], network: ScriptedNetwork, invariants: Invariants) -> None:
    existing = {(log.topic, log.partition) for name in ("a", "b") for log in network.partitions(name)}
    owned = [partition for user in users for partition in user.consumer.assignment()]
    if sorted(owned) != sorted(existing):
        invariants.fail(f"in the end {sorted(owned)} are owned, of {sorted(existing)}")
        return
    for user, topics in zip(users, wanted, strict=True):
        for partition in user.consumer.assignment():
            if partition.topic not in topics:
                invariants.fail(f"in the end {user.name} owns {partition}, and is subscribed to {topics}")
            end = network.logs[partition].end_offset
            position = user.consumer._subscription.state(partition).position
            if position != end:
                invariants.fail(f"in the end {user.name} is at {position} of {partition}, which ends at {end}")


def _check_tasks(invariants: Invariants) -> None:
    for task in asyncio.all_tasks():
        if "odradek/client/" in repr(task) or "client/group" in repr(task):
            invariants.fail(f"after all have closed, {task!r} goes on")
