"""Defects put into the member on purpose, each of which a seed must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.client.group.auto_commit import AutoCommit
from odradek.client.group.consumer_member import ConsumerMember
from tests.client.simulation.simulation import simulate


def keep_both(self: AutoCommit) -> None:
    pass


async def report_nothing_owned(self: ConsumerMember) -> None:
    await self._send(self.generation, {})


# With eager tasks a seed has another order of calls: 4 and 16 find the first defect then.
@pytest.mark.parametrize(
    ("owner", "name", "defect", "seeds", "failure"),
    [
        (AutoCommit, "supersede", keep_both, (5, 10, 14, 17, 22, 4, 16), "committed"),
        (ConsumerMember, "keep_alive", report_nothing_owned, (5, 11, 23, 47), " own "),
    ],
    ids=["an earlier commit is repeated after a later one", "a listener's partitions are reported as given up"],
)
def test_a_seed_finds(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    defect: Callable[..., Any],
    seeds: tuple[int, ...],
    failure: str,
) -> None:
    monkeypatch.setattr(owner, name, defect)

    assert any(failure in each for seed in seeds for each in simulate(seed).failures[:1])
