"""The analysis finds each anomaly in a history that has only this one."""

from __future__ import annotations

import pytest

from tests.checker.analysis import find_anomalies
from tests.checker.history import CommittedOffset, History, Outcome, Seen, Transaction, Write

COMMITTED = Transaction("committed", Outcome.COMMITTED, (Write(0, "a", 0), Write(1, "b", 0)))
ABORTED = Transaction("aborted", Outcome.ABORTED, (Write(0, "c", 2), Write(1, "d", 2)))
UNKNOWN = Transaction("unknown", Outcome.UNKNOWN, (Write(0, "e", 4), Write(1, "f")))
A, B, C, E, F = Seen(0, 0, "a"), Seen(1, 0, "b"), Seen(0, 2, "c"), Seen(0, 4, "e"), Seen(1, 4, "f")


def kinds(final: list[Seen], reads: list[Seen] | None = None) -> set[str]:
    reads = [A, B] if reads is None else reads
    history = History([COMMITTED, ABORTED, UNKNOWN], {"reader": reads}, final)
    return {anomaly.kind for anomaly in find_anomalies(history)}


@pytest.mark.parametrize("final", [[A, B], [A, B, E, F]], ids=["aborted", "committed"])
def test_a_transaction_of_unknown_outcome_is_in_the_log_or_is_not(final: list[Seen]) -> None:
    assert kinds(final) == set()


def test_a_record_of_an_aborted_transaction_is_found() -> None:
    assert kinds([A, B], [A, C]) == {"aborted read"}


def test_a_record_that_nobody_sent_is_found() -> None:
    assert kinds([A, B], [A, Seen(1, 9, "z")]) == {"aborted read"}


def test_a_committed_transaction_that_is_missing_is_found() -> None:
    assert kinds([], []) == {"lost write"}


def test_a_part_of_a_transaction_is_found() -> None:
    assert kinds([A, B, E]) == {"torn transaction"}


def test_a_record_at_two_offsets_is_found() -> None:
    assert "duplicate" in kinds([A, B, E, F, Seen(1, 6, "f")])


def test_another_record_at_an_offset_is_found() -> None:
    assert kinds([A, B, E, F], [Seen(1, 4, "b")]) >= {"inconsistent offset"}


def test_a_record_away_from_its_acknowledged_offset_is_found() -> None:
    assert kinds([A, Seen(1, 7, "b")], []) == {"inconsistent offset"}


def test_a_reader_that_goes_back_is_found() -> None:
    assert kinds([A, B, E, F], [E, A]) == {"reordered"}


def offsets(*events: CommittedOffset) -> set[str]:
    return {anomaly.kind for anomaly in find_anomalies(History(committed_offsets={"group": list(events)}))}


def test_an_offset_is_that_of_the_last_commit() -> None:
    commit, read = CommittedOffset(1, Outcome.COMMITTED), CommittedOffset(1)

    assert offsets(CommittedOffset(-1), commit, read, CommittedOffset(2, Outcome.ABORTED), read) == set()
    assert offsets(commit, CommittedOffset(-1)) == {"inconsistent committed offset"}
    assert offsets(commit, CommittedOffset(2, Outcome.ABORTED), CommittedOffset(2)) == {"inconsistent committed offset"}


@pytest.mark.parametrize("offset", [1, 2])
def test_an_offset_of_unknown_outcome_is_decided_by_the_first_read(offset: int) -> None:
    before = CommittedOffset(1, Outcome.COMMITTED), CommittedOffset(2, Outcome.UNKNOWN), CommittedOffset(offset)

    assert offsets(*before, CommittedOffset(offset)) == set()
    assert offsets(*before, CommittedOffset(3 - offset)) == {"inconsistent committed offset"}


def test_what_a_client_could_not_do_is_found() -> None:
    assert {anomaly.kind for anomaly in find_anomalies(History(failures=["stuck"]))} == {"failed client"}


def test_a_transaction_that_does_not_end_is_found() -> None:
    assert {anomaly.kind for anomaly in find_anomalies(History(stuck=["one"]))} == {"stuck transaction"}


def test_without_the_whole_log_no_write_is_lost() -> None:
    assert find_anomalies(History([COMMITTED], {"reader": [A]})) == []
