from __future__ import annotations

from tests.peers.suites.crates import outcomes_of
from tests.peers.suites.outcomes import Result

_OUTPUT = """
running 3 tests
test test_tls ... ignored
test test_plain ... ok
test test_topic_crud ... FAILED

failures:

---- test_topic_crud stdout ----

thread 'test_topic_crud' panicked at tests/client.rs:99:9:
no topic

failures:
    test_topic_crud

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.25s
"""


def test_tests_are_named_by_their_target_and_a_failed_one_keeps_its_output() -> None:
    found = outcomes_of("client", _OUTPUT.splitlines(keepends=True))

    assert {name: outcome.result for name, outcome in found.items()} == {
        "client::test_tls": Result.SKIPPED,
        "client::test_plain": Result.PASSED,
        "client::test_topic_crud": Result.FAILED,
    }
    assert found["client::test_plain"].output == ""
    assert found["client::test_topic_crud"].output.strip() == (
        "thread 'test_topic_crud' panicked at tests/client.rs:99:9:\nno topic"
    )


def test_a_target_without_a_summary_has_failed() -> None:
    found = outcomes_of("client", ["running 2 tests\n", "test test_plain ... ok\n"])

    assert (found["client::test_plain"].result, found["client"].result) == (Result.PASSED, Result.FAILED)
