from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.store.etcd.messages import WatchResponse
from odradek.broker.metadata.store.etcd.revisions import Revisions
from odradek.broker.metadata.store.store import KV, Batch, Change


def _change(revision: int, key: str) -> tuple[int, Change]:
    return revision, Change(key.encode(), KV(key.encode(), b"", revision, revision))


def _response(
    *changes: tuple[int, Change], revision: int = 0, created: bool = False, fragment: bool = False
) -> WatchResponse:
    return WatchResponse(revision, created, False, 0, "", fragment, list(changes))


def _keys(batches: list[Batch]) -> list[tuple[int, str]]:
    return [(batch.revision, "".join(change.key.decode() for change in batch.changes)) for batch in batches]


def test_a_response_with_several_revisions_becomes_a_batch_for_each() -> None:
    revisions = Revisions(9)

    batches = revisions.batches(_response(_change(10, "b"), _change(10, "a"), _change(11, "a"), revision=50))

    assert _keys(batches) == [(10, "ab"), (11, "a")]
    assert revisions.reached == 11


def test_known_revisions_are_dropped() -> None:
    revisions = Revisions(10)

    batches = revisions.batches(_response(_change(10, "a"), _change(10, "b"), _change(12, "c")))

    assert _keys(batches) == [(12, "c")]


def test_the_header_of_a_response_with_known_changes_reports_no_progress() -> None:
    revisions = Revisions(10)

    assert revisions.batches(_response(_change(10, "a"), revision=50)) == []
    assert revisions.reached == 10


def test_the_confirmation_reports_no_progress() -> None:
    revisions = Revisions(10)

    assert revisions.batches(_response(revision=50, created=True)) == []
    assert revisions.reached == 10


def test_an_empty_response_reports_progress_also_at_a_known_revision() -> None:
    revisions = Revisions(10)

    assert revisions.batches(_response(revision=10)) == [Batch(10, ())]
    assert revisions.batches(_response(revision=15)) == [Batch(15, ())]
    assert revisions.reached == 15


def test_the_progress_of_a_server_that_lags_behind_is_ignored() -> None:
    revisions = Revisions(10)

    assert revisions.batches(_response(revision=8)) == []
    assert revisions.reached == 10


def test_the_last_revision_of_a_fragment_waits_for_the_rest() -> None:
    revisions = Revisions(9)

    assert _keys(revisions.batches(_response(_change(10, "a"), _change(11, "b"), fragment=True))) == [(10, "a")]
    assert revisions.batches(_response(_change(11, "c"), fragment=True)) == []
    assert revisions.reached == 10
    assert _keys(revisions.batches(_response(_change(11, "a"), _change(12, "a")))) == [(11, "abc"), (12, "a")]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_fragments_give_the_same_batches_as_one_response(sizes: list[int], data: st.DataObject) -> None:
    changes = [_change(10 + i, key) for i, size in enumerate(sizes) for key in "dcba"[:size]]
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(changes) - 1)))))
    parts = [changes[start:end] for start, end in zip([0, *cuts], [*cuts, len(changes)], strict=True)]
    revisions = Revisions(9)

    batches = [
        batch
        for i, part in enumerate(parts)
        for batch in revisions.batches(_response(*part, fragment=i < len(parts) - 1))
    ]

    assert batches == Revisions(9).batches(_response(*changes))
