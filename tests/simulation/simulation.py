"""One run: a seed, its schedule of faults, and what went wrong.

```
0 s      three brokers start, topics are created, clients begin
begin    faults, until the end: `FAULT_SECONDS`
heal     everything works again: within 10 s every partition is led, and soon all replicas are in sync
check    the clients stop; everything is read again, the logs are compared
```
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from odradek.broker.metadata.store.store import Batch
from tests.simulation import remakes
from tests.simulation.cluster import NODE_IDS, Cluster
from tests.simulation.history import History, Partition
from tests.simulation.invariants import LED_SECONDS, Invariants
from tests.simulation.members import ClassicMember, ConsumerMember
from tests.simulation.nemesis import Nemesis, Step, draw_schedule
from tests.simulation.remakes import Remaker, has_remakes
from tests.simulation.state import StoredState
from tests.simulation.workload import Workload
from tests.simulation.world import EndlessLoopError, World

START_SECONDS = 10.0
"""The longest time in which an undisturbed cluster starts."""
FAULT_SECONDS = 20.0
WRITE_SECONDS = 8.0
"""The time within which a writer finds the leader again: a request that was held up, and one more."""
IN_SYNC_SECONDS = 20.0
DELETED_SECONDS = 10.0
"""The time within which every broker has removed what was deleted, although an answer of the store was lost."""
_CHECK_SECONDS = 0.1
_READ_SECONDS = 20.0

SYNCED_SHARE = 0.25
"""The share of seeds in which each broker syncs before it acknowledges: then all replicas may lose power together."""

MEMBERS = 3
COMMIT_SECONDS = 12.0
"""The time within which a group commits again: its members find the coordinator, and the silent ones are removed."""

ENDED_SECONDS = 10.0
"""The time within which the transactions that clients left open have ended: their time-out, and one more."""

PLAIN, SYNCED, BRIEF, ATOMIC = "plain", "synced", "brief", "atomic"


class Outcome(NamedTuple):
    """The result of a run. `failures` is empty if nothing was wrong."""

    seed: int
    failures: list[str]
    steps: list[Step]
    fingerprint: int
    acknowledged: int
    leader_changes: int
    deliveries: int
    member_commits: int = 0
    generations: int = 0
    transactions: int = 0


class _Run:
    def __init__(self, seed: int, steps: Sequence[Step] | None, listener: Callable[[float, str], None] | None) -> None:
        self.seed = seed
        self.world = world = World(seed)
        world.listener = listener
        self.steps = list(steps) if steps is not None else draw_schedule(seed, 0.0, FAULT_SECONDS)
        self.state = StoredState(world.fail, self._maximal_isr)
        self.is_synced = random.Random(f"synced {seed}").random() < SYNCED_SHARE
        self.protocol = random.Random(f"protocol {seed}").choice((ClassicMember, ConsumerMember))
        self.versions = random.Random(f"versions {seed}").choices((1, 2), k=2)
        self.atomic: list[Partition] = []
        self.has_remakes = has_remakes(seed)
        properties = {"log.flush.interval.messages": "1"} if self.is_synced else {}
        properties |= remakes.PROPERTIES if self.has_remakes else {}
        self.cluster = cluster = Cluster(world, self._changed, properties)
        self.invariants = Invariants(cluster, self.state, world.fail)
        self.history = History(world.fail)
        self.workload = Workload(self.history, cluster.new_client, world.fail)
        self.nemesis = Nemesis(
            cluster,
            leader=self._leader_of,
            controller=lambda: self.state.controller,
            deciding=self.invariants.deciding,
            may_cut_power=self._may_cut_power,
            lease_of=self._lease_of,
        )

    def go(self) -> None:
        world, cluster = self.world, self.cluster
        for node_id in NODE_IDS:
            cluster.network.at(0.01 * node_id, cluster.start, node_id)
        ready = self._in_clients(self._set_up())
        if not self._wait(ready.done, START_SECONDS):
            world.fail("the cluster does not start")
            return
        begin = world.now
        self.nemesis.plan([step._replace(at=step.at + begin) for step in self.steps])
        self._look_until(begin + FAULT_SECONDS)
        self.nemesis.heal()
        if not self._wait(self.invariants.led, LED_SECONDS):
            world.fail(f"not led {LED_SECONDS} s after healing: {self.invariants.describe()}")
        stopped = self._in_clients(self._finish_writing())
        self._wait(stopped.done, WRITE_SECONDS + 2 * COMMIT_SECONDS + 1)
        if not self._wait(self.invariants.in_sync, IN_SYNC_SECONDS):
            world.fail(f"not in sync {IN_SYNC_SECONDS} s after healing: {self.invariants.describe()}")
        checked = self._in_clients(self._read_everything())
        if not self._wait(checked.done, _READ_SECONDS):
            world.fail(f"not everything can be read: {self.invariants.describe()}")
        self._check_transactions()
        deleted = self.history.deleted
        if not world.failures and not self._wait(lambda: not self.invariants.leftovers(deleted), DELETED_SECONDS):
            world.fail(f"{DELETED_SECONDS} s after healing: {'; '.join(self.invariants.leftovers(deleted))}")
        # The ends of transactions were written after the replicas were in sync.
        if not world.failures and not self._wait(self.invariants.in_sync, IN_SYNC_SECONDS):
            world.fail(f"not in sync {IN_SYNC_SECONDS} s after the last transaction: {self.invariants.describe()}")
        if not world.failures:
            self.invariants.check_healed()

    def _check_transactions(self) -> None:
        """Wait until all transactions have ended, by their time-outs where the wall clock allows, and read them."""
        if any(step.kind == "clock" for step in self.steps):
            self._wait(self._in_clients(self.workload.abort_transactions()).done, _READ_SECONDS)
        if not self._wait(lambda: not self.invariants.open_transactions(), ENDED_SECONDS):
            self.world.fail(f"open {ENDED_SECONDS} s after all clients stopped: {self.invariants.open_transactions()}")
            return
        read = self._in_clients(self.workload.check_transactions(self.invariants.ends(self.atomic)))
        if not self._wait(read.done, _READ_SECONDS):
            self.world.fail(f"not all transactions can be read: {self.invariants.describe()}")
        elif read.exception() is not None:
            self.world.fail(f"not all transactions can be read: {read.exception()!r}")

    def _maximal_isr(self, node_id: int, partition: Partition, epoch: int) -> set[int] | None:
        return self.invariants.maximal_isr(node_id, partition, epoch)

    def _changed(self, batch: Batch) -> None:
        self.world.note(f"store {batch.revision}")
        self.state.apply(batch)

    def _in_clients(self, coroutine: object) -> asyncio.Task[None]:
        return self.cluster.clients.create_task(coroutine)  # type: ignore[arg-type]

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Run until a condition holds, at most for a time; return whether it does."""
        end = self.world.now + seconds
        while not condition() and self.world.now < end:
            self._look_until(min(end, self.world.now + _CHECK_SECONDS))
        return condition()

    def _look_until(self, end: float) -> None:
        """Run up to a time, and check the invariants on the way."""
        while self.world.now < end:
            self.world.run(min(end, self.world.now + _CHECK_SECONDS))
            self.invariants.check()
            self.invariants.check_starts(self.history)

    async def _set_up(self) -> None:
        workload = self.workload
        plain = await workload.create(PLAIN, 2)
        synced = await workload.create(SYNCED, 1, flush_messages="1")
        for partition in ((plain, 0), (plain, 1), (synced, 0)):
            workload.start(workload.write(partition))
            workload.start(workload.read(partition))
        atomic = await workload.create(ATOMIC, 2)
        self.atomic = [(atomic, 0), (atomic, 1)]
        workload.start_transactions(ATOMIC, self.atomic, self.versions)
        workload.start(workload.commit("g", plain, PLAIN))
        workload.start_members("members", MEMBERS, self.protocol, (PLAIN, plain, 2))
        workload.start(workload.administrate(BRIEF))
        if self.has_remakes:
            workload.start(Remaker(workload, self.cluster.new_client("remaker")).run())

    async def _finish_writing(self) -> None:
        before = self.workload.acknowledged
        if not await self.workload.acknowledges_more(before, WRITE_SECONDS):
            self.world.fail("no write is acknowledged, although every partition is led")
        if not await self.workload.members_commit(COMMIT_SECONDS):
            self.world.fail("no member of the group commits, although every partition is led")
        if not await self.workload.transactions_commit(COMMIT_SECONDS):
            self.world.fail("no transaction is committed, although every partition is led")
        await self.workload.stop()

    async def _read_everything(self) -> None:
        client = self.cluster.new_client("checker")
        for partition, history in self.history.partitions.items():
            if partition not in self.state.partitions or partition in self.atomic:
                continue
            offset = history.start
            while offset < history.acknowledged_end:
                offset = await self.workload.read_once(client, partition, offset)
        client.close()
        await self.workload.check_groups_again(PLAIN)

    def _leader_of(self, share: float) -> int:
        """Return the leader of one of the partitions: the first for 0, the last for nearly 1."""
        leaders = [state.leader for state in self.state.partitions.values() if state.leader >= 0]
        return leaders[int(share * len(leaders))] if leaders else NODE_IDS[0]

    def _lease_of(self, node_id: int) -> int:
        registered = self.state.brokers.get(node_id)
        return 0 if registered is None else registered.value.lease

    def _may_cut_power(self, node_ids: Sequence[int]) -> bool:
        """Whether every partition then still has a replica that has lost nothing; with fsyncs none ever does."""
        for state in self.state.partitions.values():
            if self.is_synced or not any(node_id in state.isr for node_id in node_ids):
                continue
            others = [
                member
                for member, epoch in state.isr.items()
                if member not in node_ids and self._is_intact(member, epoch)
            ]
            if not others:
                return False
        return True

    def _is_intact(self, node_id: int, epoch_in_isr: int) -> bool:
        node, registered = self.cluster.nodes[node_id], self.state.brokers.get(node_id)
        if registered is None or registered.value.boot_id != node.boot_id:
            return False
        return node.host.is_on and registered.intact_since <= epoch_in_isr

    def outcome(self) -> Outcome:
        return Outcome(
            self.seed,
            self.world.failures,
            self.steps,
            self.world.fingerprint,
            self.workload.acknowledged,
            self.state.leader_changes,
            self.cluster.network.delivered,
            sum(group.commits for group in self.history.owned_groups.values()),
            sum(group.generations for group in self.history.owned_groups.values()),
            self.history.transactions.committed,
        )


def simulate(
    seed: int, steps: Sequence[Step] | None = None, listener: Callable[[float, str], None] | None = None
) -> Outcome:
    """Run a seed, with another schedule if `steps` are given; `listener` receives the trace."""
    collects = gc.isenabled()
    gc.disable()  # what is collected runs its cleanup, at a moment that is not the same in each process
    report, disabled = sys.unraisablehook, logging.root.manager.disable
    logging.disable()
    try:
        run = _Run(seed, steps, listener)
        try:
            run.go()
        except EndlessLoopError as error:
            run.world.fail(str(error))
        outcome = run.outcome()
        sys.unraisablehook = lambda _: None  # processes that died in the middle of something cannot end properly
        with warnings.catch_warnings(action="ignore"):
            run.cluster.end()
            del run
            gc.collect()
        return outcome
    finally:
        sys.unraisablehook = report
        logging.disable(disabled)
        if collects:
            gc.enable()
