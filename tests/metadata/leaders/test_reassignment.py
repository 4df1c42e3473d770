"""The steps of a reassignment, as pure functions."""

from __future__ import annotations

import msgspec
import pytest

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders.leadership import Decision
from odradek.broker.metadata.leaders.reassignment import begin, complete, revert
from odradek.broker.metadata.values import RUNNING, Assignment, PartitionState
from odradek.protocol.errors import ErrorCode, KafkaError

BROKERS = {node_id: BrokerImage(node_id, node_id * 10, [], None, RUNNING, "", node_id * 10) for node_id in range(1, 6)}


def partition(
    replicas: list[int],
    isr: list[int],
    adding: list[int] | None = None,
    removing: list[int] | None = None,
    leader: int = 1,
) -> PartitionImage:
    return PartitionImage(
        leader,
        5,
        replicas,
        {replica: replica * 10 for replica in isr},
        9,
        adding_replicas=adding or [],
        removing_replicas=removing or [],
    )


def state(leader: int, isr: list[int], epoch: int = 6) -> PartitionState:
    return PartitionState(leader, epoch, {replica: replica * 10 for replica in isr}, 10)


def test_all_old_and_new_replicas_fetch_until_the_new_ones_are_in_sync() -> None:
    begun = begin(partition([1, 2, 3], [1, 2, 3]), [2, 3, 4], BROKERS, min_insync=1)

    assert begun == Decision(state(1, [1, 2, 3], 5), assignment=Assignment([2, 3, 4, 1], [4], [1]))
    assert complete(partition([2, 3, 4, 1], [1, 2, 3], [4], [1]), BROKERS, min_insync=1) is None


def test_it_completes_when_what_is_added_is_in_sync() -> None:
    done = complete(partition([2, 3, 4, 1], [1, 3, 4], [4], [1]), BROKERS, min_insync=1)

    assert done == Decision(state(3, [3, 4]), assignment=Assignment([2, 3, 4]))


def test_a_leader_that_stays_gets_a_new_epoch_that_fences_what_was_removed() -> None:
    done = complete(partition([1, 2, 4, 3], [1, 2, 3, 4], [4], [3]), BROKERS, min_insync=1)

    assert done == Decision(state(1, [1, 2, 4]), assignment=Assignment([1, 2, 4]))


def test_without_a_replica_to_add_it_is_complete_at_once() -> None:
    assert begin(partition([1, 2, 3], [1, 2, 3]), [1, 2], BROKERS, min_insync=1) == Decision(
        state(1, [1, 2]), assignment=Assignment([1, 2])
    )
    assert begin(partition([1, 2], [1, 2]), [2, 1], BROKERS, min_insync=1) == Decision(
        state(1, [1, 2], 5), assignment=Assignment([2, 1])
    )


def test_it_does_not_complete_while_no_replica_that_stays_can_lead() -> None:
    assert begin(partition([1, 2, 3], [3], leader=3), [1, 2], BROKERS, min_insync=1).assignment == Assignment(
        [1, 2, 3], [], [3]
    )
    live = {1: BROKERS[1]}
    assert complete(partition([4, 1], [1, 4], [4], [1]), live, min_insync=1) is None
    assert complete(partition([1, 2], [1, 2]), BROKERS, min_insync=1) is None, "none is running"


def test_a_second_request_replaces_the_first() -> None:
    moving = partition([3, 4, 1, 2], [1, 2, 3], [3, 4], [1, 2])

    again = begin(moving, [3, 5], BROKERS, min_insync=1)

    assert again.assignment == Assignment([3, 5, 4, 1, 2], [3, 5], [4, 1, 2])


def test_a_cancelled_one_leaves_the_replicas_from_before() -> None:
    moving = partition([3, 4, 1, 2], [1, 3], [3, 4], [1, 2])

    assert revert(moving, BROKERS, min_insync=1, unclean=False) == Decision(
        state(1, [1]), assignment=Assignment([1, 2])
    )


def test_a_leader_that_was_added_hands_over_when_it_is_cancelled() -> None:
    moving = partition([3, 1], [1, 3], [3], [1], leader=3)

    assert revert(moving, BROKERS, min_insync=1, unclean=False) == Decision(state(1, [1]), assignment=Assignment([1]))


def test_only_an_unclean_election_cancels_when_only_added_replicas_are_in_sync() -> None:
    moving = partition([3, 1], [3], [3], [1], leader=3)

    with pytest.raises(KafkaError) as caught:
        revert(moving, BROKERS, min_insync=1, unclean=False)
    reverted = revert(moving, BROKERS, min_insync=1, unclean=True)

    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reverted == Decision(state(1, [1]), may_have_lost=True, is_unclean=True, assignment=Assignment([1]))


def test_nothing_is_cancelled_where_nothing_moves() -> None:
    with pytest.raises(KafkaError) as caught:
        revert(partition([1], [1]), BROKERS, min_insync=1, unclean=False)

    assert caught.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(("min_insync", "eligible"), [(3, {2: 20}), (2, {}), (1, {})])
def test_eligible_leader_replicas_stay_while_too_few_are_in_sync(min_insync: int, eligible: dict[int, int]) -> None:
    """They have all that is committed, except those that are removed."""
    moving = msgspec.structs.replace(
        partition([1, 2, 4, 3], [1, 3, 4], [4], [3], leader=3), eligible_leader_replicas={2: 20, 3: 30}
    )
    expected = msgspec.structs.replace(state(1, [1, 4]), elr=eligible)

    done = complete(moving, BROKERS, min_insync=min_insync)
    begun = begin(
        msgspec.structs.replace(moving, adding_replicas=[], removing_replicas=[]),
        [1, 2, 4],
        BROKERS,
        min_insync=min_insync,
    )

    assert done == begun == Decision(expected, assignment=Assignment([1, 2, 4]))


def test_a_cancelled_one_keeps_eligible_leader_replicas() -> None:
    moving = msgspec.structs.replace(partition([3, 1, 2], [1, 3], [3], [1], leader=3), eligible_leader_replicas={2: 20})

    reverted = revert(moving, BROKERS, min_insync=2, unclean=False)

    assert reverted.state == msgspec.structs.replace(state(1, [1]), elr={2: 20})
