from __future__ import annotations

import pytest

from tests.simulation.transaction_history import Outcome, SimulatedTransaction, TransactionHistory

LEFT, RIGHT = (b"topic-id", 0), (b"topic-id", 1)


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def history(failures: list[str]) -> TransactionHistory:
    return TransactionHistory(failures.append)


@pytest.fixture
def decided(history: TransactionHistory) -> SimulatedTransaction:
    """A transaction of two records, at 0 and 5 of two partitions, whose commit has been sent."""
    transaction = history.begin("p", {b"a": LEFT, b"b": RIGHT}, 7)
    history.acknowledge([b"a"], 0)
    history.acknowledge([b"b"], 5)
    transaction.outcome = Outcome.UNKNOWN
    return transaction


def test_a_transaction_that_is_read_as_a_whole_is_no_contradiction(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str]
) -> None:
    history.read(LEFT, 0, 2, [(0, b"a")])
    history.read(RIGHT, 0, 6, [(5, b"b")])
    history.read(LEFT, 0, 2, [(0, b"a")])
    history.end(decided, Outcome.COMMITTED)
    history.begin("p", {b"c": LEFT}, 8)

    history.check_whole()
    history.found_offset("p", 7)

    assert failures == []
    assert (history.committed, history.aborted) == (1, 0)


def test_a_transaction_of_which_nothing_is_read_is_no_contradiction_unless_its_commit_was_acknowledged(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str]
) -> None:
    history.read(LEFT, 0, 2, [])
    history.check_whole()
    history.found_offset("p", -1)
    assert failures == []

    history.end(decided, Outcome.COMMITTED)
    history.check_whole()

    assert failures == ["[b'a', b'b'] of the committed transaction p-0 are missing"]


def test_half_a_transaction_is_found(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str]
) -> None:
    history.read(LEFT, 0, 2, [(0, b"a")])
    history.check_whole()
    history.found_offset("p", -1)

    assert failures == [
        "[b'b'] of the unknown transaction p-0 are missing",
        "the group of p is at -1, its last transaction committed 7",
    ]


@pytest.mark.parametrize("outcome", [Outcome.OPEN, Outcome.ABORTED])
def test_a_record_of_a_transaction_that_is_not_committed_is_found(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str], outcome: Outcome
) -> None:
    decided.outcome = outcome

    history.read(LEFT, 0, 1, [(0, b"a")])

    assert failures == [f"746f70-0: b'a' of the {outcome.value} transaction p-0 read at 0"]


def test_an_abort_is_not_acknowledged_after_its_records_were_read(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str]
) -> None:
    history.read(LEFT, 0, 1, [(0, b"a")])
    history.end(decided, Outcome.ABORTED)

    assert failures == ["[b'a'] of the aborted transaction p-0 were read"]


def test_what_was_read_does_not_change(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str]
) -> None:
    history.read(LEFT, 0, 2, [])
    history.read(LEFT, 0, 2, [(0, b"a")])
    history.read(LEFT, 0, 2, [])

    assert failures == [
        "746f70-0: b'a' of the unknown transaction p-0 at 0 was not there before",
        "746f70-0: b'a' at 0 has gone",
    ]


def test_a_record_has_one_place_and_one_writer(
    history: TransactionHistory, decided: SimulatedTransaction, failures: list[str]
) -> None:
    history.read(LEFT, 0, 9, [(3, b"a"), (4, b"b"), (5, b"x")])

    assert failures == [
        "b'a' of the unknown transaction p-0 is at 3 and at 0",
        "746f70-0: b'b' read at 4, which nobody wrote",
        "746f70-0: b'x' read at 5, which nobody wrote",
    ]
