"""Defects put into the broker on purpose: each breaks one rule of replication, and a test must find it.

```
mutant ─► applied to the classes of this process ─┬─ simulations with faults of its `kinds` ─┬─► a failure: found
                                                  └─ its `tests`, which pass without it ─────┘
```

A rule whose mutant nothing finds is not tested. The kinds are those that the rule is about, so that few seeds do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from odradek.broker.coordinator.runtime import runtime
from odradek.broker.coordinator.runtime.partition_writer import PartitionWriter
from odradek.broker.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.broker.metadata.leaders import controller, leadership
from odradek.broker.metadata.leaders.controller import Controller
from odradek.broker.replication import followers, isr_changes
from odradek.broker.replication.appends import log_appender
from odradek.broker.replication.appends.log_appender import LogAppender
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.checkpoints.checkpoints import Checkpoints
from odradek.broker.storage.checkpoints.metadata_revision import ALL_LOGS
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.producers.producer_state import ProducerState
from tests.mutants import defects
from tests.simulation.nemesis import Kind, draw_schedule
from tests.simulation.simulation import FAULT_SECONDS, simulate

Patch = tuple[Any, str, Any]
"""(owner, name of its attribute, what replaces it)"""


class UnusedMutantError(AssertionError):
    """The code of a mutant was never called: the broker has other code in its place now."""


class Mutant(NamedTuple):
    """`rule` is what it breaks; `kinds` are the faults of its runs, `tests` those that must fail."""

    name: str
    rule: str
    patches: tuple[Patch, ...]
    kinds: tuple[Kind, ...] = ()
    tests: tuple[str, ...] = ()

    @contextmanager
    def applied(self) -> Iterator[set[str]]:
        """Replace the code, and yield the names of what has been called of it."""
        called: set[str] = set()
        with ExitStack() as stack:
            for owner, name, replacement in self.patches:
                counted = _noting(called, name, replacement) if callable(replacement) else replacement
                stack.enter_context(mock.patch.object(owner, name, counted))
            yield called


def _noting(called: set[str], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def note_and_call(*arguments: Any, **keywords: Any) -> Any:
        called.add(name)
        return function(*arguments, **keywords)

    return note_and_call


_LEADERS: tuple[Kind, ...] = ("kill", "depose", "isolate", "lease")
_ISR_CHANGES = "tests/replication/test_isr_changes.py::test_"
_LEADERSHIP = "tests/metadata/leaders/test_leadership.py::test_"
_LEADING = "tests/replication/test_leading.py::test_"
_FOLLOWED = "tests/replication/follower/test_followed_replica.py::test_"
_MARKERS = "tests/storage/producers/test_marker_epochs.py::test_"
_TRANSACTIONS = "tests/coordinator/transactions/test_transcripts.py"
_FENCED = "tests/coordinator/transactions/test_fenced_coordinator.py::test_"
_MADE_AGAIN = "tests/storage/test_names_made_again.py::test_"
_LOST = "tests/broker/test_lost_replicas.py::test_"
_PARTITIONS = "tests/replication/test_partitions.py::test_"

MUTANTS = [
    Mutant(
        "acknowledge before the high watermark",
        "acks=all waits for the in-sync replicas",
        ((Partition, "acknowledgement", defects.acknowledge_at_once),),
        ("kill", "isolate", "lease"),
    ),
    Mutant(
        "the proposed ISR counts",
        "until its outcome is known, committed and proposed members count",
        ((Partition, "maximal_isr", defects.count_proposed),),
        ("isolate", "cut", "lossy", "slow"),
    ),
    Mutant(
        "ISR without compare",
        "a change of the ISR compares the state that it replaces",
        ((isr_changes, "isr_change", defects.change_without_compare),),
        _LEADERS,
        (f"{_ISR_CHANGES}a_late_request_changes_nothing_after_the_repeated_one_was_applied",),
    ),
    Mutant(
        "no truncation",
        "a follower cuts what its leader does not have",
        ((Partition, "_divergence", defects.no_divergence),),
        _LEADERS,
    ),
    Mutant(
        "truncation to the high watermark",
        "a follower cuts by epoch (KIP-101)",
        ((FollowedReplica, "prepare", defects.truncate_to_high_watermark),),
        _LEADERS,
        (f"{_FOLLOWED}records_above_the_high_watermark_stay_until_the_leader_shows_that_it_lacks_them",),
    ),
    Mutant(
        "elect outside the ISR",
        "a leader was in sync",
        ((controller, "choose_leader", defects.elect_any),),
        _LEADERS,
    ),
    Mutant(
        "ignore the broker epoch",
        "a fetch counts only from the registered incarnation (KIP-903)",
        ((Followers, "record", defects.record_any_broker_epoch),),
        ("power", "cut", "slow", "isolate"),
        (f"{_LEADING}a_fetch_with_another_broker_epoch_than_the_registered_one_moves_nothing",),
    ),
    Mutant(
        "ignore the leader epoch",
        "a fetch counts only in the leader's epoch",
        (
            (Partition, "record_follower_fetch", defects.record_any_leader_epoch),
            (Partition, "read_for_fetch", defects.read_in_any_epoch),
        ),
        ("lease", "cut", "slow", "isolate"),
        (f"{_LEADING}a_fetch_with_another_leader_epoch_moves_nothing",),
    ),
    Mutant(
        "join without the epoch's start",
        "a replica that joins has what earlier epochs may have committed",
        ((followers, "has_reached", defects.join_without_epoch_start),),
        _LEADERS,
        (f"{_LEADING}a_replica_may_join_the_isr_only_behind_the_start_of_the_leader_epoch",),
    ),
    Mutant(
        "high watermark below the least ISR",
        "it does not move while the ISR is smaller than min.insync.replicas (KIP-966)",
        ((Partition, "_replicated_end", defects.replicated_end_of_any_isr),),
        ("isolate", "kill"),
        (f"{_LEADING}the_high_watermark_does_not_move_while_the_isr_is_smaller_than_min_insync_replicas",),
    ),
    Mutant(
        "high watermark beside eligible replicas",
        "it does not move while a replica outside the ISR can be elected (KIP-966)",
        ((Partition, "_replicated_end", defects.replicated_end_beside_eligible),),
        tests=(f"{_LEADING}the_high_watermark_does_not_move_while_there_are_eligible_leader_replicas",),
    ),
    Mutant(
        "elect a replica that is not intact",
        "a replica that lost records leaves the ISR before it leads",
        ((leadership, "_is_electable", defects.electable_although_lost),),
        ("power", "pause"),
        (f"{_LEADERSHIP}a_leader_that_may_have_lost_records_is_replaced_by_a_replica_that_has_not",),
    ),
    Mutant(
        "an ISR of one acknowledges",
        "acks=all needs min.insync.replicas",
        ((Partition, "_enough_in_sync", defects.always_enough),),
        ("isolate", "kill", "power"),
    ),
    Mutant(
        "controller without compare",
        "a deposed controller changes nothing",
        ((Controller, "_commit", defects.commit_without_compare),),
        ("pause", "lossy", "lease", "cut"),
        ("tests/metadata/leaders/test_controller.py::test_a_deposed_controller_cannot_change_anything",),
    ),
    Mutant(
        "coordinator before the high watermark",
        "a commit counts when it is committed",
        ((PartitionWriter, "_is_committed", defects.committed_at_once),),
        ("depose", "kill"),
        ("tests/coordinator/runtime/test_runtime.py::test_an_append_waits_for_the_replicas",),
    ),
    Mutant(
        "marker before the decision",
        "a marker is sent when the decision is committed in `__transaction_state`",
        ((TransactionShard, "_transition", defects.send_markers_before_the_decision),),
        ("kill", "depose", "isolate"),
        (f"{_TRANSACTIONS}::test_the_transactional_id_does_what_the_script_says",),
    ),
    Mutant(
        "transaction coordinator before it is loaded",
        "a coordinator serves when it has read its partition",
        ((runtime, "load", defects.serve_transactions_without_loading),),
        ("kill", "depose"),
    ),
    Mutant(
        "no markers after a fence",
        "a coordinator that was fenced for a while, and is still the coordinator, sends its markers",
        ((CoordinatorRuntime, "leader_epoch_of", defects.no_epoch_while_fenced),),
        ("doze", "kill", "isolate"),
        (
            f"{_FENCED}markers_are_sent_after_a_fence_that_came_while_they_waited",
            f"{_FENCED}markers_are_sent_if_the_coordinator_was_fenced_when_it_was_loaded",
        ),
    ),
    Mutant(
        "marker of an older coordinator",
        "a partition refuses the marker of an older coordinator epoch than the last one's",
        ((ProducerState, "check_marker", defects.check_marker_of_any_coordinator),),
        ("depose", "slow", "cut"),
        (f"{_MARKERS}a_repeated_marker_of_version_2_is_accepted_once_the_transaction_has_ended",),
    ),
    Mutant(
        "queued append across epochs",
        "an append belongs to the epoch of its request",
        ((LogAppender, "_append_in_epoch", defects.append_in_any_epoch), (log_appender, "LARGE_APPEND_BYTES", 1)),
        ("depose", "disk"),
        ("tests/replication/appends/test_log_appender.py::test_a_queued_append_fails_when_its_leader_epoch_is_over",),
    ),
    Mutant(
        "follower without fsync",
        "with flush.messages=1 a follower promises what is on its disk",
        ((LogAppender, "sync_if_demanded", defects.no_sync),),
        ("power", "kill"),
        (f"{_FOLLOWED}records_are_synced_before_the_next_fetch_if_flush_messages_demands_it",),
    ),
    Mutant(
        "log taken by name",
        "a topic that was created again begins with an empty log",
        ((Partitions, "_update", defects.take_log_by_name),),
        ("kill", "isolate"),
        (f"{_PARTITIONS}a_log_of_an_older_topic_of_the_name_is_deleted_first",),
    ),
    Mutant(
        "log deleted by name",
        "a log is deleted for a topic id with a record of its deletion alone",
        (
            (Partitions, "_remove", defects.remove_with_log),
            (Partitions, "_set_log_aside", defects.delete_in_place_of_setting_aside),
        ),
        tests=(
            f"{_PARTITIONS}the_logs_of_a_topic_that_is_gone_but_not_deleted_stay",
            f"{_PARTITIONS}other_logs_without_a_partition_are_set_aside_in_a_cluster",
        ),
    ),
    Mutant(
        "checkpoints by name",
        "a topic that was created again inherits no row of a checkpoint",
        ((Checkpoints, "drop", defects.keep_rows),),
        ("kill", "power"),
        (
            f"{_MADE_AGAIN}rows_of_a_retired_log_are_gone_when_the_call_returns",
            "tests/simulation/test_names_made_again.py::test_a_new_topic_inherits_nothing_whenever_its_broker_stops",
        ),
    ),
    Mutant(
        "a new log counts as lost",
        "a partition whose replicas never made their logs is led again",
        ((LogDirs, "logs_revision", ALL_LOGS),),
        ("blackout", "power"),
        (f"{_LOST}a_topic_whose_brokers_were_killed_before_they_made_its_logs_begins_empty",),
    ),
]


class Found(NamedTuple):
    """The first seed that finds a mutant, and its first failure."""

    seed: int
    failure: str


def find(name: str, seeds: Sequence[int]) -> Found | None:
    """Run seeds on a mutant until one fails; None if none does. Raises `UnusedMutantError`."""
    mutant = next(each for each in MUTANTS if each.name == name)
    used: set[str] = set()
    for seed in seeds:
        with mutant.applied() as called:
            outcome = simulate(seed, draw_schedule(seed, 0.0, FAULT_SECONDS, mutant.kinds))
        used |= called
        if outcome.failures:
            return Found(seed, outcome.failures[0])
    unused = {name for _, name, replacement in mutant.patches if callable(replacement)} - used
    if unused:
        raise UnusedMutantError(f"{name}: nothing calls {', '.join(sorted(unused))} any more")
    return None
