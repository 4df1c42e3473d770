"""The registry of a classic group's members."""

from __future__ import annotations

from odradek.broker.coordinator.classic_group.events import Join
from odradek.broker.coordinator.classic_group.members import Members, new_member
from odradek.broker.coordinator.runtime.events import PendingReply


def joining(protocol: str) -> Join:
    return Join(
        PendingReply(), "", "m", None, "c", "/h", 30_000, 60_000, "consumer", ((protocol, b""),), "", False, True
    )


def test_a_member_that_joins_again_supports_only_the_protocols_it_names_last() -> None:
    members = Members()
    member = new_member(joining("range-0"), "m")
    members.add(member)

    for number in range(1, 1000):
        members.rejoin(member, joining(f"range-{number}"))

    assert members.supports_any((("range-999", b""),))
    assert not members.supports_any((("range-998", b""),))
