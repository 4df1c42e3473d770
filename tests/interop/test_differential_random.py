"""Random sequences of requests of groups and of administration, with equal answers of Apache Kafka and Odradek.

`RANDOM_SEEDS=100-200` plays these seeds instead of the few of each run. A difference is reported with the shortest
sequence that still shows it. The servers are restarted in the middle of the sequences of groups.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest

from tests.interop.conftest import KINDS
from tests.interop.differential import random_administration, random_groups
from tests.interop.differential.random_playing import Act, Differs, Play, Side, coordinated, shrink
from tests.peers import apache
from tests.peers.server import Server

PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "group.consumer.assignors": "range",  # the other one does not assign alike
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
ONLY_APACHE = {"group.consumer.assignor.offload.enable": "false"}
_numbers = itertools.count()
LENGTHS = {random_groups: 60, random_administration: 20}


def seeds(usual: int) -> range:
    """Return the seeds that this run tries."""
    first, _, last = os.environ.get("RANDOM_SEEDS", f"0-{usual}").partition("-")
    return range(int(first), int(last))


@pytest.fixture(scope="module")
def servers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """An Apache Kafka, and the server that is compared with it."""
    reference = apache.prepare(tmp_path_factory.mktemp("random-reference"), PROPERTIES | ONLY_APACHE)
    subject = KINDS[kind](tmp_path_factory.mktemp("random-subject"), PROPERTIES)
    try:
        yield reference.start(), subject.start()
    finally:
        for each in (reference, subject):
            each.kill()
    assert "Traceback" not in subject.printed(), subject.printed()[-8000:]


class Tried:
    """The sequences of one test."""

    def __init__(self, servers: Sequence[Server], kinds: ModuleType) -> None:
        self._servers = servers
        self._kinds = kinds
        self.answered = 0
        self.number = 0

    def sides(self) -> list[Side]:
        number = next(_numbers)
        name = self._kinds.__name__.rpartition(".")[2].replace("_", "-")
        return [Side(server.port, str(server.log_dir), f"{name}-{number}") for server in self._servers]

    async def difference(self, acts: Sequence[Act]) -> Differs | None:
        sides = self.sides()
        await coordinated(sides)
        play = Play(self._kinds.KINDS, sides)
        try:
            await play.play(acts)
        except Differs as difference:
            return difference
        finally:
            self.answered += play.answered
            self.number += len(acts)
            await play.disconnect()
        return None

    async def check(self, acts: Sequence[Act]) -> None:
        """Fail with the shortest sequence that differs, if it differs twice.

        Requests on different connections may overtake each other on a machine under load: once.
        """
        found = await self.difference(acts) and await self.difference(acts)
        if found:
            shorter = await shrink(acts, self.difference, self._kinds.is_fixed)
            pytest.fail("\n".join([str(found), "The shortest sequence that differs:", *map(str, shorter)]))


async def _play_seeds(tried: Tried, kinds: ModuleType, chosen: range) -> None:
    for seed in chosen:
        await tried.check(kinds.sequence(seed, LENGTHS[kinds]))
    # Sequences that end early, where Kafka chooses by chance, are the exception.
    assert tried.answered > tried.number / 2


@pytest.mark.java
async def test_random_requests_of_groups_are_answered_alike(servers: tuple[Server, Server]) -> None:
    await _play_seeds(Tried(servers, random_groups), random_groups, seeds(4))


@pytest.mark.java
async def test_random_administration_is_answered_alike(servers: tuple[Server, Server]) -> None:
    await _play_seeds(Tried(servers, random_administration), random_administration, seeds(3))


@pytest.mark.java
async def test_random_requests_of_groups_are_answered_alike_after_a_restart(servers: tuple[Server, Server]) -> None:
    chosen = [1000 + seed for seed in seeds(3)]
    found = await _differing_after_restart(servers, chosen)
    if found:
        found = await _differing_after_restart(servers, list(found))
    assert found == {}


async def _differing_after_restart(servers: tuple[Server, Server], chosen: Sequence[int]) -> dict[int, str]:
    """Return the differences by seed. All sequences share one restart, because it takes Apache Kafka seconds."""
    tried = Tried(servers, random_groups)
    found: dict[int, str] = {}
    plays = {}
    for seed in chosen:
        acts = random_groups.sequence(seed, LENGTHS[random_groups])
        middle = len(acts) // 2
        sides = tried.sides()
        await coordinated(sides)
        plays[seed] = (Play(random_groups.KINDS, sides), acts[:middle], acts[middle:])
        found |= await _play(seed, *plays[seed][:2])
    await _restart(servers)
    for seed in plays.keys() - found.keys():
        play, before, after = plays[seed]
        await coordinated(play.sides)
        found |= await _play(seed, play, after, [*before, "restart"])
    return found


async def _play(seed: int, play: Play, acts: Sequence[Act], before: Sequence[object] = ()) -> dict[int, str]:
    """Play one half of a sequence, and return its difference."""
    try:
        await play.play(acts)
    except Differs as difference:
        return {seed: "\n".join(map(str, [difference, *before, *acts]))}
    finally:
        await play.disconnect()
    return {}


async def _restart(servers: Sequence[Server]) -> None:
    def restart(server: Server) -> None:
        server.stop()
        server.start()

    await asyncio.gather(*(asyncio.to_thread(restart, server) for server in servers))
