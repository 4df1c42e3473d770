"""`odradek workers --spread`: moves partitions to their workers, or finishes a move that was interrupted.

```
locked ─► unfinished plan? ── yes ──► execute it ─► read everything again ─┐
             └────────────── no ───────────────────────────────────────────┴─► checks ─► plan ─► write it ─► execute it
```
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.config import BrokerConfig
from odradek.broker.config.workers import problems
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.randomness import Randomness
from odradek.broker.workers.checks import check_cluster, check_stopped
from odradek.broker.workers.directory_changes import move_directories, remove_directories
from odradek.broker.workers.layout import Fleet, SpreadRefusedError, alone_in_store
from odradek.broker.workers.machine import Machine
from odradek.broker.workers.plan import Plan, read_plan, remove_plan, write_plan
from odradek.broker.workers.planning import make_plan
from odradek.broker.workers.store_changes import change_store
from odradek.broker.workers.stored import Stored, read_stored


class Outcome(NamedTuple):
    """What was done: replicas moved now, and by the end of an interrupted plan; and sentences for the operator."""

    moved: int
    finished: int
    remaining: list[str]


async def spread(config: BrokerConfig, machine: Machine, store: MetadataStore, randomness: Randomness) -> Outcome:
    """Bring every partition of this machine to its worker. May be interrupted anywhere, and repeated.

    Raises `SpreadRefusedError`, `LogDirRefusedError`, `MalformedFileError`, `StoreError`, `OSError`.
    """
    for problem in problems(config):
        raise SpreadRefusedError(problem)
    keys = Keys(config.metadata_etcd_namespace)
    finished, remaining = 0, []
    for directory in machine.log_dirs:
        plan = read_plan(machine.files, directory)
        if plan is not None:
            _check_same(plan, config, machine)
            await _check_store(plan, config, store, keys)
            remaining += await _execute(plan, directory, machine, store, keys)
            finished += _count(plan)
            machine.read()
    stored = await read_stored(store, keys)
    fleet = fleet_of(config, machine.workers, stored)
    cluster_id = check_cluster(stored, config.cluster_id)
    check_stopped(stored, fleet)
    plan = make_plan(config, machine, stored, fleet, cluster_id, randomness)
    if plan.changes_nothing:
        return Outcome(0, finished, remaining)
    write_plan(machine.files, machine.log_dirs[0], plan)
    remaining += await _execute(plan, machine.log_dirs[0], machine, store, keys)
    return Outcome(_count(plan), finished, list(dict.fromkeys(remaining)))


def fleet_of(config: BrokerConfig, workers: set[int], stored: Stored) -> Fleet:
    """Return the workers of this machine: configured, or with a directory, or else in a store of their own."""
    others = set() if config.metadata_etcd_endpoints else alone_in_store(stored.image, config.node_id)
    return Fleet(config.node_id, workers | others | set(range(config.num_workers)))


async def _execute(plan: Plan, directory: str, machine: Machine, store: MetadataStore, keys: Keys) -> list[str]:
    """Execute a plan that is in `directory`, and remove it. Return sentences about directories that stay."""
    move_directories(plan, machine)
    await change_store(plan, store, keys)
    remaining = remove_directories(plan, machine)
    remove_plan(machine.files, directory)
    return remaining


def _check_same(plan: Plan, config: BrokerConfig, machine: Machine) -> None:
    """Refuse a plan for other log.dirs or another node. Raises `SpreadRefusedError`."""
    found = [machine.directories.get(place) for place in machine.places(0)]
    ids = [directory.meta.directory_id if directory and directory.meta else None for directory in found]
    is_same = len(ids) == len(plan.directory_ids) and all(
        here is None or planned in ("", here) for here, planned in zip(ids, plan.directory_ids, strict=True)
    )
    if not is_same or plan.node_id != config.node_id:
        raise SpreadRefusedError(
            "the move of partitions that was interrupted was begun with another node.id, or other log.dirs, or in"
            f" another order: finish it with the configuration of then (node.id = {plan.node_id})"
        )


async def _check_store(plan: Plan, config: BrokerConfig, store: MetadataStore, keys: Keys) -> None:
    cluster_id = check_cluster(await read_stored(store, keys), config.cluster_id)
    if cluster_id != plan.cluster_id:
        raise SpreadRefusedError(
            f"the move of partitions that was interrupted is of cluster {plan.cluster_id}, the metadata store is of"
            f" {cluster_id}"
        )


def _count(plan: Plan) -> int:
    return sum(len(each.workers) for each in plan.moved)
