from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.consumer_group.churn import Churn
from tests.effort import examples, some


@examples(5)
@pytest.mark.parametrize("classic", some([0.4, 0.0]))
@given(seed=st.integers(0, 2**32))
def test_fifty_members_that_come_and_go_read_everything_and_never_share_a_partition(classic: float, seed: int) -> None:
    churn = Churn(seed, clients=50, classic=classic)
    churn.run(240_000, mishaps=0.1)
    churn.revive()
    churn.run(240_000, mishaps=0.0)
    churn.run(30_000, mishaps=0.0, produces=False)

    assert churn.group.group.state == "Stable"
    read = {topic for client in churn.clients for topic in client.topics}
    expected = {
        (topic.topic_id, number)
        for topic in churn.group.image.topics.values()
        if topic.name in read
        for number in range(len(topic.partitions))
    }
    assert churn.owners().keys() == expected
    assert churn.reading.unread({topic_id for topic_id, _ in expected}) == set()


@examples(20)
@given(seed=st.integers(0, 2**32))
def test_a_group_loaded_from_its_records_is_the_group_that_wrote_them(seed: int) -> None:
    churn = Churn(seed, clients=8)
    churn.run(60_000, mishaps=0.2)
    reloaded = churn.group.new()
    for record in churn.group.log:
        reloaded.replay(record)
    ours, theirs = churn.group.group.group_state, reloaded.group_state
    assert theirs.members == ours.members
    assert (theirs.group_epoch, theirs.metadata_hash) == (ours.group_epoch, ours.metadata_hash)
    assert (theirs.target_epoch, theirs.targets) == (ours.target_epoch, ours.targets)
    assert theirs.owners == ours.owners
