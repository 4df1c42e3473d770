"""Records that Apache Kafka 4.3.1 wrote, while it performed the script of `tests/handlers/consumer_group_script`.

One a line, key and value in hex, `-` for none: groups of both protocols, static members, a regular expression, a group
that went over to the consumer protocol and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from odradek.broker.coordinator.consumer_group.member import MemberState
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.runtime.records import CoordinatorRecord, decode_record, encode_record
from odradek.protocol.stored_records.record_types import GROUP_RECORDS

RECORDED = Path(__file__).parent / "recorded" / "kafka-records.txt"


def stored() -> Iterator[tuple[bytes, bytes | None]]:
    for line in RECORDED.read_text().splitlines():
        key, value = line.split()
        yield bytes.fromhex(key), None if value == "-" else bytes.fromhex(value)


def records_of(group_id: str) -> Iterator[CoordinatorRecord]:
    """The records of a consumer group, in order."""
    for key, value in stored():
        record = decode_record(GROUP_RECORDS, key, value)
        assert record is not None
        if getattr(record.key, "group_id", None) == group_id:
            yield record


def test_every_record_is_decoded_and_encoded_to_the_same_bytes() -> None:
    seen = 0
    for key, value in stored():
        record = decode_record(GROUP_RECORDS, key, value)
        assert record is not None
        assert encode_record(record) == (key, value)
        seen += 1
    assert seen > 80


def test_the_state_follows_from_the_records_of_kafka() -> None:
    group = GroupState("cg-a")
    shared = []
    for record in records_of("cg-a"):
        group.replay(record)
        if group.name == "Stable" and len(group.members) == 2:
            shared = sorted(sorted(*member.assigned.values()) for member in group.members.values())
    assert shared == [[0, 1], [2, 3]]
    assert group.name == "Empty"
    assert (group.members, group.targets, group.static_member_ids) == ({}, {}, {})


def test_members_of_the_classic_protocol_are_recognized() -> None:
    group = GroupState("cg-d")
    seen = {}
    for record in records_of("cg-d"):
        group.replay(record)
        for member in group.members.values():
            seen[member.member_id] = member.classic
    (classic,) = [each for each in seen.values() if each is not None]
    assert seen["c1"] is None
    assert classic.session_timeout_ms == 30_000
    assert [protocol.name for protocol in classic.supported_protocols] == ["range"]


def test_a_static_member_that_is_away_keeps_its_partitions_from_the_epoch_0_on() -> None:
    group = GroupState("cg-b")
    away = None
    for record in records_of("cg-b"):
        group.replay(record)
        away = away or next((member for member in group.members.values() if member.member_epoch == -2), None)
    assert away is not None
    assert away.state is MemberState.STABLE
    assert list(away.assigned.values()) == [{0: 0, 1: 0, 2: 0, 3: 0}]
