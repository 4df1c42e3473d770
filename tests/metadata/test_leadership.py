from __future__ import annotations

import pytest

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leadership import Decision, choose_leader
from odradek.broker.metadata.values import PartitionState


def _broker(node_id: int, epoch: int, intact_since: int | None = None) -> BrokerImage:
    return BrokerImage(
        node_id=node_id,
        epoch=epoch,
        listeners=[],
        rack=None,
        state="running",
        incarnation="",
        intact_since=epoch if intact_since is None else intact_since,
    )


def _decide(leader: int, replicas: list[int], isr: dict[int, int], *brokers: BrokerImage) -> Decision | None:
    partition = PartitionImage(
        leader=leader, leader_epoch=5, replicas=replicas, isr=isr, partition_epoch=9, eligible_leader_replicas={8: 3}
    )
    return choose_leader(partition, {broker.node_id: broker for broker in brokers})


def _state(leader: int, leader_epoch: int, isr: dict[int, int]) -> PartitionState:
    return PartitionState(leader, leader_epoch, isr, 10, elr={8: 3})


def test_nothing_changes_while_the_leader_and_its_followers_serve() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 10), _broker(2, 20)) is None


def test_a_dead_leader_is_replaced_by_the_first_replica_in_sync_as_assigned() -> None:
    decision = _decide(1, [1, 3, 2, 4], {1: 10, 2: 20, 4: 40}, _broker(2, 20), _broker(3, 30), _broker(4, 40))

    assert decision == Decision(_state(2, 6, {2: 20, 4: 40}))


def test_a_dead_follower_leaves_the_isr_and_the_epoch_stays() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 10)) == Decision(_state(1, 5, {1: 10}))


def test_without_a_live_replica_there_is_no_leader_and_the_isr_stays() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}) == Decision(_state(-1, 6, {1: 10, 2: 20}))


def test_a_partition_without_a_leader_gets_one_when_a_member_of_the_isr_returns() -> None:
    assert _decide(-1, [1, 2], {1: 10, 2: 20}, _broker(3, 30)) is None
    assert _decide(-1, [1, 2], {1: 10, 2: 20}, _broker(2, 20)) == Decision(_state(2, 6, {2: 20}))


def test_a_restart_that_lost_nothing_keeps_the_epoch() -> None:
    assert _decide(1, [1], {1: 10}, _broker(1, 30, intact_since=10)) is None


def test_a_chain_of_restarts_that_lost_nothing_keeps_the_epoch() -> None:
    assert _decide(1, [1], {1: 20}, _broker(1, 40, intact_since=10)) is None


def test_an_only_replica_that_may_have_lost_records_leads_with_a_new_epoch() -> None:
    assert _decide(1, [1], {1: 10}, _broker(1, 30)) == Decision(_state(1, 6, {1: 30}), may_have_lost=True)


def test_a_leader_that_may_have_lost_records_is_replaced_by_a_replica_that_has_not() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 30), _broker(2, 20)) == Decision(_state(2, 6, {2: 20}))


def test_a_follower_that_may_have_lost_records_leaves_the_isr() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 10), _broker(2, 30)) == Decision(_state(1, 5, {1: 10}))


def test_several_replicas_that_may_all_have_lost_records_have_no_leader() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 30), _broker(2, 40)) == Decision(_state(-1, 6, {1: 10, 2: 20}))


def test_a_new_leader_is_in_the_isr_with_its_present_broker_epoch() -> None:
    decision = _decide(1, [1, 2], {1: 10, 2: 20}, _broker(2, 50, intact_since=20))

    assert decision is not None
    assert decision.state.isr == {2: 50}


@pytest.mark.parametrize("leader", [2, 7])
def test_a_leader_outside_the_isr_does_not_lead(leader: int) -> None:
    decision = _decide(leader, [1, 2], {1: 10}, _broker(1, 10), _broker(2, 20))

    assert decision == Decision(_state(1, 6, {1: 10}))
