"""Defects put into the broker on purpose: each breaks one rule of replication, and the simulation must find it.

```
mutant ─► applied to the classes of this process ─► runs with faults of its `kinds` ─► a failure: caught
```

A rule whose mutant no run finds is not tested. The kinds are those that the rule is about, so that few seeds do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from odradek.broker.coordinator.runtime.partition_writer import PartitionWriter
from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders import controller, leadership
from odradek.broker.metadata.leaders.controller import Controller
from odradek.broker.metadata.leaders.leadership import Decision
from odradek.broker.replication import followers, isr_changes, log_appender
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.log_appender import LogAppender
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.protocol.errors import ErrorCode
from tests.simulation.nemesis import Kind, draw_schedule
from tests.simulation.simulation import FAULT_SECONDS, simulate

Patch = tuple[Any, str, Any]
"""(owner, name of its attribute, what replaces it)"""


class Mutant(NamedTuple):
    """`rule` is what it breaks; `kinds` are the faults of its runs."""

    name: str
    rule: str
    patches: tuple[Patch, ...]
    kinds: tuple[Kind, ...]

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, replacement in self.patches:
                stack.enter_context(mock.patch.object(owner, name, replacement))
            yield


def _acknowledge_at_once(self: Partition, next_offset: int, leader_epoch: int) -> ErrorCode:
    return ErrorCode.NONE


def _count_proposed(self: Partition) -> set[int]:
    return set(self.isr if self.proposed_isr is None else self.proposed_isr)


_isr_change = isr_changes.isr_change


def _change_without_compare(*arguments: Any) -> isr_changes.IsrChange:
    return _isr_change(*arguments)._replace(when=())


def _no_divergence(self: Partition, last_fetched_epoch: int, fetch_offset: int) -> None:
    return None


_prepare = FollowedReplica.prepare


async def _truncate_to_high_watermark(self: FollowedReplica) -> None:
    await _prepare(self)
    log = self.partition.log
    if self.partition.high_watermark < log.log_end_offset:
        await self.partition.appender.run_between_appends(log.truncate_to, self.partition.high_watermark)


def _elect_any(partition: PartitionImage, brokers: dict[int, BrokerImage], *, unclean: bool = False) -> Decision | None:
    everybody = {replica: partition.isr.get(replica, 1 << 40) for replica in partition.replicas}
    return leadership.choose_leader(msgspec.structs.replace(partition, isr=everybody), brokers, unclean=unclean)


def _record_any_broker_epoch(
    self: Followers, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int, leader_end: int
) -> Any:
    state, broker = self.states.get(replica_id), self._brokers(replica_id)
    if state is None or broker is None:
        return None
    state.fetched(fetch_offset, log_start_offset, leader_end, broker.epoch, self._clock.monotonic())
    return state


_record_fetch, _read_for_fetch = Partition.record_follower_fetch, Partition.read_for_fetch


def _record_any_leader_epoch(
    self: Partition, replica_id: int, broker_epoch: int, leader_epoch: int, fetch_offset: int, log_start_offset: int
) -> None:
    _record_fetch(self, replica_id, broker_epoch, self.leader_epoch, fetch_offset, log_start_offset)


def _read_in_any_epoch(
    self: Partition,
    fetch_offset: int,
    max_bytes: int,
    minimum_one_batch: bool,
    read_committed: bool,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    replica_id: int = -1,
) -> Any:
    return _read_for_fetch(
        self, fetch_offset, max_bytes, minimum_one_batch, read_committed, -1, last_fetched_epoch, replica_id
    )


def _join_without_epoch_start(end: int, high_watermark: int, epoch_start_offset: int) -> bool:
    return end >= high_watermark


def _replicated_end_of_any_isr(self: Partition) -> int:
    return self.followers.high_watermark(self._own_end, self.log.log_end_offset, self.maximal_isr())


def _electable_although_lost(replica: int, epoch_in_isr: int, brokers: dict[int, BrokerImage]) -> bool:
    return replica in brokers and not brokers[replica].is_draining


def _always_enough(self: Partition) -> bool:
    return True


_controller_commit = Controller._commit


async def _commit_without_compare(self: Controller, when: Any, then: Any) -> Any:
    return await _controller_commit(self, when if self.epoch == 0 else (), then)


def _committed_at_once(self: PartitionWriter, end_offset: int) -> bool:
    return True


def _append_in_any_epoch(self: LogAppender, records: memoryview, leader_epoch: int, now_ms: int) -> AppendInfo:
    return self._log.append_as_leader(records, leader_epoch, now_ms)


async def _no_sync(self: LogAppender) -> None:
    return None


_update = Partitions._update


def _take_log_by_name(self: Partitions, topic: Any, index: int, image: Any, *, had_log: bool) -> Any:
    log = self._log_dirs.logs.get((topic.name, index))
    if log is not None and log.topic_id != topic.topic_id and index not in self._by_id.get(topic.topic_id, {}):
        self._add(topic, index, image, log)
        return None
    return _update(self, topic, index, image, had_log=had_log)


_LEADERS: tuple[Kind, ...] = ("kill", "depose", "isolate", "lease")

MUTANTS = [
    Mutant(
        "acknowledge before the high watermark",
        "acks=all waits for the in-sync replicas",
        ((Partition, "acknowledgement", _acknowledge_at_once),),
        ("kill", "isolate", "lease"),
    ),
    Mutant(
        "the proposed ISR counts",
        "until its outcome is known, committed and proposed members count",
        ((Partition, "maximal_isr", _count_proposed),),
        ("isolate", "cut", "lossy", "slow"),
    ),
    Mutant(
        "ISR without compare",
        "a change of the ISR compares the state that it replaces",
        ((isr_changes, "isr_change", _change_without_compare),),
        _LEADERS,
    ),
    Mutant(
        "no truncation",
        "a follower cuts what its leader does not have",
        ((Partition, "_divergence", _no_divergence),),
        _LEADERS,
    ),
    Mutant(
        "truncation to the high watermark",
        "a follower cuts by epoch (KIP-101)",
        ((FollowedReplica, "prepare", _truncate_to_high_watermark),),
        _LEADERS,
    ),
    Mutant(
        "elect outside the ISR",
        "a leader was in sync",
        ((controller, "choose_leader", _elect_any),),
        _LEADERS,
    ),
    Mutant(
        "ignore the broker epoch",
        "a fetch counts only from the registered incarnation (KIP-903)",
        ((Followers, "record", _record_any_broker_epoch),),
        ("power", "cut", "slow", "isolate"),
    ),
    Mutant(
        "ignore the leader epoch",
        "a fetch counts only in the leader's epoch",
        (
            (Partition, "record_follower_fetch", _record_any_leader_epoch),
            (Partition, "read_for_fetch", _read_in_any_epoch),
        ),
        ("lease", "cut", "slow", "isolate"),
    ),
    Mutant(
        "join without the epoch's start",
        "a replica that joins has what earlier epochs may have committed",
        ((followers, "has_reached", _join_without_epoch_start),),
        _LEADERS,
    ),
    Mutant(
        "high watermark below the least ISR",
        "it does not move while the ISR is smaller than min.insync.replicas (KIP-966)",
        ((Partition, "_replicated_end", _replicated_end_of_any_isr),),
        ("isolate", "kill"),
    ),
    Mutant(
        "elect a replica that is not intact",
        "a replica that lost records leaves the ISR before it leads",
        ((leadership, "_is_electable", _electable_although_lost),),
        ("power", "pause"),
    ),
    Mutant(
        "an ISR of one acknowledges",
        "acks=all needs min.insync.replicas",
        ((Partition, "_enough_in_sync", _always_enough),),
        ("isolate", "kill", "power"),
    ),
    Mutant(
        "controller without compare",
        "a deposed controller changes nothing",
        ((Controller, "_commit", _commit_without_compare),),
        ("pause", "lossy", "lease", "cut"),
    ),
    Mutant(
        "coordinator before the high watermark",
        "a commit counts when it is committed",
        ((PartitionWriter, "_is_committed", _committed_at_once),),
        ("depose", "kill"),
    ),
    Mutant(
        "queued append across epochs",
        "an append belongs to the epoch of its request",
        (
            (LogAppender, "_append_in_epoch", _append_in_any_epoch),
            (log_appender, "LARGE_APPEND_BYTES", 1),
        ),
        ("depose", "disk"),
    ),
    Mutant(
        "follower without fsync",
        "with flush.messages=1 a follower promises what is on its disk",
        ((LogAppender, "sync_if_demanded", _no_sync),),
        ("power", "kill"),
    ),
    Mutant(
        "log taken by name",
        "a topic that was created again begins with an empty log",
        ((Partitions, "_update", _take_log_by_name),),
        ("kill", "isolate"),
    ),
]


class Found(NamedTuple):
    """The first seed that finds a mutant, and its first failure."""

    seed: int
    failure: str


def find(name: str, seeds: Sequence[int]) -> Found | None:
    """Run seeds on a mutant until one fails; None if none does."""
    mutant = next(each for each in MUTANTS if each.name == name)
    for seed in seeds:
        with mutant.applied():
            outcome = simulate(seed, draw_schedule(seed, 0.0, FAULT_SECONDS, mutant.kinds))
        if outcome.failures:
            return Found(seed, outcome.failures[0])
    return None
