from __future__ import annotations

import pytest

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders.leadership import Decision, choose_leader, choose_unclean, without
from odradek.broker.metadata.values import DRAINING, RUNNING, PartitionState, encode


def _broker(node_id: int, epoch: int, intact_since: int | None = None, state: str = RUNNING) -> BrokerImage:
    return BrokerImage(
        node_id=node_id,
        epoch=epoch,
        listeners=[],
        rack=None,
        state=state,
        incarnation="",
        intact_since=epoch if intact_since is None else intact_since,
    )


def _decide(
    leader: int, replicas: list[int], isr: dict[int, int], *brokers: BrokerImage, unclean: bool = False
) -> Decision | None:
    partition = PartitionImage(leader=leader, leader_epoch=5, replicas=replicas, isr=isr, partition_epoch=9)
    return choose_leader(partition, {broker.node_id: broker for broker in brokers}, unclean=unclean)


def _state(leader: int, leader_epoch: int, isr: dict[int, int]) -> PartitionState:
    return PartitionState(leader, leader_epoch, isr, 10)


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
    state = PartitionState(1, 6, {1: 30}, 10)
    assert _decide(1, [1], {1: 10}, _broker(1, 30)) == Decision(state, may_have_lost=True)


def test_replicas_of_a_leader_that_may_have_lost_records_may_remove_theirs() -> None:
    state = PartitionState(1, 6, {1: 30}, 10, rec=1)
    assert _decide(1, [1, 2], {1: 10}, _broker(1, 30)) == Decision(state, may_have_lost=True)


def test_a_leader_that_may_have_lost_records_is_replaced_by_a_replica_that_has_not() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 30), _broker(2, 20)) == Decision(_state(2, 6, {2: 20}))


def test_a_follower_that_may_have_lost_records_leaves_the_isr() -> None:
    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 10), _broker(2, 30)) == Decision(_state(1, 5, {1: 10}))


def test_when_all_replicas_have_lost_records_the_former_leader_leads() -> None:
    """As after a power failure of all brokers: nobody has more records than the members of the ISR."""
    state = PartitionState(2, 6, {2: 40}, 10, rec=1)
    brokers = [_broker(1, 30), _broker(2, 40), _broker(3, 50)]

    decision = _decide(2, [3, 1, 2], {1: 10, 2: 20}, *brokers)

    assert decision == Decision(state, may_have_lost=True, is_unclean=True)


def test_when_all_replicas_have_lost_records_and_none_leads_the_first_in_sync_as_assigned_leads() -> None:
    state = PartitionState(1, 6, {1: 30}, 10, rec=1)
    brokers = [_broker(1, 30), _broker(2, 40), _broker(3, 50)]

    decision = _decide(-1, [3, 1, 2], {1: 10, 2: 20}, *brokers)

    assert decision == Decision(state, may_have_lost=True, is_unclean=True)


def test_a_replica_that_has_lost_records_leaves_the_isr_while_another_member_may_have_them() -> None:
    lost = _broker(1, 30)

    assert _decide(1, [1, 2], {1: 10, 2: 20}, lost) == Decision(_state(-1, 6, {2: 20}))
    assert _decide(-1, [1, 2], {1: 10, 2: 20}, lost) == Decision(_state(-1, 5, {2: 20}))
    assert _decide(-1, [1, 2], {2: 20}, lost) is None
    assert _decide(-1, [1, 2], {2: 20}, lost, _broker(2, 50, intact_since=20)) == Decision(_state(2, 6, {2: 50}))
    last = Decision(PartitionState(2, 6, {2: 50}, 10, rec=1), may_have_lost=True)
    assert _decide(-1, [1, 2], {2: 20}, lost, _broker(2, 50)) == last


def test_replicas_that_have_lost_records_and_are_draining_keep_the_isr() -> None:
    draining = [_broker(1, 30, state=DRAINING), _broker(2, 40, state=DRAINING)]

    assert _decide(1, [1, 2], {1: 10, 2: 20}, *draining) == Decision(_state(-1, 6, {1: 10, 2: 20}))
    assert _decide(-1, [1, 2], {1: 10, 2: 20}, *draining) is None


def test_a_new_leader_is_in_the_isr_with_its_present_broker_epoch() -> None:
    decision = _decide(1, [1, 2], {1: 10, 2: 20}, _broker(2, 50, intact_since=20))

    assert decision is not None
    assert decision.state.isr == {2: 50}


@pytest.mark.parametrize("leader", [2, 7])
def test_a_leader_outside_the_isr_does_not_lead(leader: int) -> None:
    decision = _decide(leader, [1, 2], {1: 10}, _broker(1, 10), _broker(2, 20))

    assert decision == Decision(_state(1, 6, {1: 10}))


def test_a_draining_leader_hands_over_and_leaves_the_isr() -> None:
    draining = _broker(1, 10, state=DRAINING)

    assert _decide(1, [1, 2], {1: 10, 2: 20}, draining, _broker(2, 20)) == Decision(_state(2, 6, {2: 20}))


def test_a_draining_follower_leaves_the_isr() -> None:
    draining = _broker(2, 20, state=DRAINING)

    assert _decide(1, [1, 2], {1: 10, 2: 20}, _broker(1, 10), draining) == Decision(_state(1, 5, {1: 10}))


def test_a_draining_broker_that_is_alone_in_the_isr_stays_there_and_leads_nothing() -> None:
    draining = _broker(1, 10, state=DRAINING)

    assert _decide(1, [1, 2], {1: 10}, draining, _broker(2, 20)) == Decision(_state(-1, 6, {1: 10}))


def test_an_unclean_election_needs_the_topics_permission() -> None:
    state = PartitionState(3, 6, {3: 30}, 10, rec=1)

    assert _decide(1, [1, 2, 3], {1: 10}, _broker(3, 30)) == Decision(_state(-1, 6, {1: 10}))
    unclean = _decide(1, [1, 2, 3], {1: 10}, _broker(2, 20, state=DRAINING), _broker(3, 30), unclean=True)
    assert unclean == Decision(state, may_have_lost=True, is_unclean=True)


def test_where_a_clean_election_is_possible_no_unclean_one_happens() -> None:
    decision = _decide(1, [1, 3, 2], {1: 10, 2: 20}, _broker(2, 20), _broker(3, 30), unclean=True)

    assert decision == Decision(_state(2, 6, {2: 20}))


def test_an_administrators_unclean_election_passes_over_draining_brokers() -> None:
    partition = PartitionImage(-1, 5, [1, 2, 3], {1: 10}, 9, eligible_leader_replicas={1: 10})
    brokers = {2: _broker(2, 20, state=DRAINING), 3: _broker(3, 30)}

    assert choose_unclean(partition, brokers) == PartitionState(3, 6, {3: 30}, 10, rec=1)
    assert choose_unclean(partition, {2: brokers[2]}) is None


def test_the_mark_of_an_unclean_election_stays_until_all_replicas_are_in_sync() -> None:
    stored = encode(PartitionState(1, 5, {1: 10, 2: 20}, 9, rec=1))
    partition = PartitionImage(1, 5, [1, 2, 3], {1: 10, 2: 20}, 9, state_value=stored)

    decision = choose_leader(partition, {1: _broker(1, 10)})

    assert decision is not None
    assert decision.state.rec == 1


def _lose(leader: int, isr: dict[int, int], lost: int, *brokers: BrokerImage) -> Decision | None:
    partition = PartitionImage(leader, 5, [1, 2, 3], isr, 9)
    by_id = {broker.node_id: broker for broker in brokers}
    return without(partition, lost, by_id, -by_id[lost].epoch)


def test_a_leader_that_has_lost_its_log_is_replaced() -> None:
    brokers = [_broker(1, 10), _broker(2, 20), _broker(3, 30)]

    assert _lose(1, {1: 10, 2: 20, 3: 30}, 1, *brokers) == Decision(_state(2, 6, {2: 20, 3: 30}))
    assert _lose(1, {1: 10, 2: 20}, 2, *brokers) == Decision(_state(1, 5, {1: 10}))
    assert _lose(1, {1: 10, 2: 20}, 3, *brokers) is None


def test_an_only_member_that_has_lost_its_log_leads_when_it_has_registered_anew_with_it() -> None:
    lost = _state(-1, 6, {1: -10})
    assert _lose(1, {1: 10}, 1, _broker(1, 10), _broker(2, 20)) == Decision(lost)
    assert _lose(-1, {1: -10}, 1, _broker(1, 10)) is None

    assert _decide(-1, [1, 2], {1: -10}, _broker(1, 10), _broker(2, 20)) is None
    back = _decide(-1, [1, 2], {1: -10}, _broker(1, 30, intact_since=10), _broker(2, 20))
    assert back == Decision(PartitionState(1, 6, {1: 30}, 10, rec=1), may_have_lost=True)


def test_an_unclean_election_passes_over_a_lost_log() -> None:
    unclean = _decide(-1, [1, 2], {1: -10}, _broker(1, 10), _broker(2, 20), unclean=True)

    assert unclean == Decision(PartitionState(2, 6, {2: 20}, 10, rec=1), may_have_lost=True, is_unclean=True)


def _decide_eligible(
    leader: int, isr: dict[int, int], eligible: dict[int, int], *brokers: BrokerImage, min_insync: int = 2
) -> Decision | None:
    partition = PartitionImage(leader, 5, [1, 2, 3], isr, 9, eligible_leader_replicas=eligible)
    return choose_leader(partition, {broker.node_id: broker for broker in brokers}, min_insync=min_insync)


def _eligible(leader: int, epoch: int, isr: dict[int, int], eligible: dict[int, int]) -> Decision:
    return Decision(PartitionState(leader, epoch, isr, 10, elr=eligible))


def test_members_that_leave_an_isr_below_min_insync_replicas_are_eligible() -> None:
    draining = _broker(2, 20, state=DRAINING)

    assert _decide_eligible(1, {1: 10, 2: 20}, {}, _broker(1, 10), draining) == _eligible(1, 5, {1: 10}, {2: 20})
    assert _decide_eligible(1, {1: 10, 2: 20}, {3: 5}, _broker(2, 20)) == _eligible(2, 6, {2: 20}, {3: 5, 1: 10})
    enough = _decide_eligible(1, {1: 10, 2: 20, 3: 30}, {}, _broker(1, 10), _broker(2, 20))
    assert enough == _eligible(1, 5, {1: 10, 2: 20}, {})


def test_a_member_that_has_lost_records_is_not_eligible() -> None:
    assert _decide_eligible(1, {1: 10, 2: 20}, {}, _broker(1, 30), _broker(2, 20)) == _eligible(2, 6, {2: 20}, {})


def test_an_eligible_replica_leads_when_no_member_can() -> None:
    """It stopped while the last member had lost power, but was registered still."""
    back, lost = _broker(2, 50, intact_since=20), _broker(1, 30)

    assert _decide_eligible(1, {1: 10}, {2: 20}, back) == _eligible(2, 6, {2: 50}, {1: 10})
    assert _decide_eligible(-1, {1: 10}, {2: 20}, lost, back) == _eligible(2, 6, {2: 50}, {})
    assert _decide_eligible(1, {1: 10}, {2: 20}, _broker(1, 10), back) is None


def test_no_replica_that_has_lost_records_leads_while_an_eligible_one_may_return() -> None:
    lost = _broker(1, 30)

    assert _decide_eligible(1, {1: 10}, {2: 20}, lost) == _eligible(-1, 6, {1: 10}, {2: 20})
    assert _decide_eligible(-1, {1: 10}, {2: 20}, lost) is None
    both = Decision(PartitionState(1, 6, {1: 30}, 10, rec=1), may_have_lost=True)
    assert _decide_eligible(-1, {1: 10}, {2: 20}, lost, _broker(2, 40)) == both


def test_a_broker_that_has_lost_its_log_is_not_eligible() -> None:
    brokers = {1: _broker(1, 10), 2: _broker(2, 20)}
    partition = PartitionImage(1, 5, [1, 2, 3], {1: 10}, 9, eligible_leader_replicas={2: 20})

    assert without(partition, 2, brokers, -20, min_insync=2) == _eligible(1, 5, {1: 10}, {})
    assert without(partition, 1, brokers, -10, min_insync=2) == _eligible(2, 6, {2: 20}, {})
