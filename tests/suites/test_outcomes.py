from __future__ import annotations

from tests.peers.suites.__main__ import SUITES
from tests.peers.suites.outcomes import Expectations, Outcome, Outcomes, Result, expectations_of, verdict_on


def outcomes(**results: str) -> Outcomes:
    return {name.replace("_", "/"): Outcome(Result(result)) for name, result in results.items()}


def test_only_tests_without_inner_tests_are_counted() -> None:
    verdict = verdict_on(outcomes(a="passed", a_b="passed", a_c="skipped", d="passed"), Expectations())

    assert (verdict.passed, verdict.skipped, verdict.failed) == (2, 1, [])
    assert verdict.is_expected


def test_a_failure_of_an_inner_test_counts_once() -> None:
    verdict = verdict_on(outcomes(a="failed", a_b="failed", a_c="passed"), Expectations())

    assert verdict.failed == ["a/b"]
    assert not verdict.is_expected


def test_an_outer_test_that_fails_with_passed_inner_ones_has_failed() -> None:
    assert verdict_on(outcomes(a="failed", a_b="passed"), Expectations()).failed == ["a"]


def test_a_known_failure_includes_its_inner_tests() -> None:
    verdict = verdict_on(outcomes(a="failed", a_b="failed", ab="failed"), Expectations(fail={"a": "transactions"}))

    assert (verdict.known, verdict.failed) == (["a/b"], ["ab"])


def test_a_known_failure_that_passes_is_reported() -> None:
    for result in ({"a": "passed"}, {}):
        verdict = verdict_on(outcomes(**result), Expectations(fail={"a": "transactions"}))
        assert verdict.stale == ["a"]
        assert not verdict.is_expected


def test_a_test_that_fails_sometimes_may_pass() -> None:
    expected = Expectations(sometimes={"a": "chance"})

    assert verdict_on(outcomes(a="passed"), expected).is_expected
    assert verdict_on(outcomes(a="failed"), expected).known == ["a"]


def test_a_test_that_is_not_run_is_known() -> None:
    verdict = verdict_on(outcomes(a="passed"), Expectations(not_run={"b": "it does not end"}))

    assert str(verdict) == "passed 1, failed 0, known 1, skipped 0"
    assert verdict.is_expected


def test_every_known_failure_has_a_suite_and_a_reason() -> None:
    for suite in SUITES:
        assert all(expectations_of(suite).reasons.values())
