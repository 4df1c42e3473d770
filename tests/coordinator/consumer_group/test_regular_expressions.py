from __future__ import annotations

import pytest

from odradek.broker.coordinator.consumer_group.regular_expressions import (
    MAX_PATTERN_BYTES,
    MAX_UNICODE_CLASSES,
    check,
    resolve,
)
from odradek.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("pattern", ["(", "a**", "[z-a]", "(?=a)", r"\1", "x{1001}"])
def test_a_pattern_that_re2_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError, match="is not a valid regular expression") as refusal:
        check(pattern)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_takes_long_to_compile_is_refused() -> None:
    """It would block all clients: RE2 runs in the broker's process and holds the interpreter's lock."""
    check("a" * MAX_PATTERN_BYTES)
    check(r"\pL" * MAX_UNICODE_CLASSES)
    with pytest.raises(KafkaError, match="longer than 4096 bytes"):
        check("ä" * (MAX_PATTERN_BYTES // 2 + 1))
    with pytest.raises(KafkaError, match="more than 10 Unicode classes"):
        check(r"\pL" * MAX_UNICODE_CLASSES + r"\PN")
    with pytest.raises(KafkaError, match="pattern too large") as refusal:
        check(r"((\pL{100}){10})")
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_long_list_of_topics_is_a_pattern_like_any_other() -> None:
    names = [f"warehouse.orders.{number:06}" for number in range(170)]
    pattern = "|".join(names)
    check(pattern)
    assert resolve({pattern}, [*names, "other"], version=1, timestamp=1)[pattern].topics == frozenset(names)


def test_a_pattern_must_match_the_whole_name() -> None:
    resolved = resolve({"a.", "b|ab"}, ["a", "ab", "abc", "b"], version=7, timestamp=9)
    assert {pattern: sorted(each.topics) for pattern, each in resolved.items()} == {"a.": ["ab"], "b|ab": ["ab", "b"]}
    assert {(each.version, each.timestamp) for each in resolved.values()} == {(7, 9)}


def test_a_pattern_that_takes_backtracking_engines_for_ever_is_matched() -> None:
    name = "a" * 249
    resolved = resolve({"(a|a)*b", "(a*)*$"}, [name], version=1, timestamp=1)
    assert resolved["(a|a)*b"].topics == frozenset()
    assert resolved["(a*)*$"].topics == frozenset([name])


def test_a_stored_pattern_that_re2_refuses_matches_nothing() -> None:
    assert resolve({"("}, ["a"], version=1, timestamp=1)["("].topics == frozenset()
