from __future__ import annotations

from tests.peers.suites.outcomes import Result
from tests.peers.suites.python_packages import outcomes_of

_REPORT = """<testsuites><testsuite>
<testcase classname="t.integration.test_kafka.test_Basic" name="test_connect"/>
<testcase classname="t.integration.test_kafka.test_Basic" name="test_fanout"><skipped>no fanout</skipped></testcase>
<testcase classname="test.test_admin" name="test_create"><failure>no topic</failure></testcase>
<testcase classname="test.test_admin" name="test_delete"/>
<testcase classname="test.test_admin" name="test_delete"><error>at its end</error></testcase>
</testsuite></testsuites>"""


def test_tests_are_named_as_on_the_command_line_of_pytest() -> None:
    found = outcomes_of(_REPORT)

    assert {name: outcome.result for name, outcome in found.items()} == {
        "t/integration/test_kafka.py::test_Basic::test_connect": Result.PASSED,
        "t/integration/test_kafka.py::test_Basic::test_fanout": Result.SKIPPED,
        "test/test_admin.py::test_create": Result.FAILED,
        "test/test_admin.py::test_delete": Result.FAILED,
    }
    assert found["test/test_admin.py::test_create"].output == "no topic"
