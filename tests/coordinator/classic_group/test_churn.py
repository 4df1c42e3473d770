from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.classic_group.churn import ClassicChurn
from tests.effort import examples


@examples(30)
@given(seed=st.integers(0, 2**32))
def test_fifty_members_that_come_and_go_read_everything_and_never_share_a_partition(seed: int) -> None:
    churn = ClassicChurn(seed, clients=50)
    churn.run(240_000, mishaps=0.05)
    churn.revive()
    churn.run(240_000, mishaps=0.0)

    assert churn.group.state == "Stable"
    assert len(churn.group.members) == 50
    # What was produced in the last seconds may still be on its way.
    unread = {
        (index, offset)
        for index, end in churn.ends.items()
        for offset in range(end - 40)
        if not churn.processed[index, offset]
    }
    assert unread == set()
