from __future__ import annotations

import json

from tests.peers.suites.go_modules import outcomes_of, patterns
from tests.peers.suites.outcomes import Result


def event(action: str, test: str | None = None, **fields: str) -> str:
    named = {"Test": test} if test else {}
    return json.dumps({"Action": action, "Package": "example.org/clients/kgo", **named, **fields})


def test_tests_are_named_by_the_package_without_its_path() -> None:
    found = outcomes_of([event("run", "TestA"), event("pass", "TestA"), event("pass")])

    assert {name: outcome.result for name, outcome in found.items()} == {"kgo.TestA": Result.PASSED}


def test_a_failed_test_keeps_its_output() -> None:
    lines = [event("run", "TestA"), event("output", "TestA", Output="no\n"), event("fail", "TestA"), event("fail")]

    found = outcomes_of(lines)

    assert {name: outcome.output for name, outcome in found.items()} == {"kgo.TestA": "no\n"}


def test_a_test_that_does_not_end_has_failed() -> None:
    assert outcomes_of([event("run", "TestA")])["kgo.TestA"].result is Result.FAILED


def test_a_package_that_does_not_build_has_failed() -> None:
    assert (
        outcomes_of(["not json", event("output", Output="undefined: x\n"), event("fail")])["kgo"].output
        == "undefined: x\n"
    )


def test_the_pattern_of_an_inner_test_has_a_part_for_each_level() -> None:
    assert patterns(["TestC", "TestA/b-1"]) == r"^TestA$/^b\-1$|^TestC$"
