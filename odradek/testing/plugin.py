"""The plugin for pytest: the fixture `kafka` and its relatives, the options `--kafka…`, the reports of failed tests.

| fixture | scope | what |
|---|---|---|
| `kafka` | test | a `Kafka` on the broker of this process, which starts at its first use; each test begins clean |
| `kafka_baseline` | session | override it: it creates, once, the topics and records that every test begins with |
| `kafka_session` | session | the same `Kafka` for `kafka_baseline`, without isolation |
| `kafka_properties` | session | override it: the properties of the brokers, by their names in Kafka |
| `kafka_for_class` | test | sets the attribute `kafka` of a `unittest.TestCase` |
| `kafka_broker` | test | a `ThreadedBroker` for this test alone |
| `kafka_session_broker` | session | another `ThreadedBroker` for the whole session |

With `--kafka=HOST:PORT` the first three use that cluster, and tests that need our broker are skipped. With
`--kafka-exact-names` only the tests of one process use that cluster, and topics keep their names.

pytest imports this module at every start, also where no test uses it, so it imports nothing but pytest. The entry point
has the name of the module: pytest then recognizes it when a conftest.py names it in `pytest_plugins`, too.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from odradek.broker.startup.embedded_config import Properties
    from odradek.broker.testing.threaded import ThreadedBroker
    from odradek.testing.kafka import Kafka
    from odradek.testing.session import Session


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kafka")
    group.addoption(
        "--kafka",
        metavar="HOST:PORT",
        help="run the tests with the fixture kafka against this cluster, with topics of their own, in place of a broker"
        " in the process of the tests",
    )
    group.addoption(
        "--kafka-exact-names",
        action="store_true",
        help="the cluster of --kafka is for these tests alone: topics have exactly the names that tests say, and all"
        " topics and groups that come during a test are deleted after it",
    )


@pytest.fixture(scope="session")
def kafka_properties() -> Mapping[str, str | int]:
    """The properties of the brokers that these fixtures start, by their names in Kafka; override it."""
    return {}


@pytest.fixture(scope="session")
def kafka_baseline() -> None:
    """Override it to create, once, what every test with the fixture kafka begins with; use kafka_session in it."""


@pytest.fixture(scope="session")
def _kafka_of_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    from odradek.testing.session import Session

    bootstrap = request.config.getoption("--kafka")
    exact_names = request.config.getoption("--kafka-exact-names")
    workers = getattr(request.config, "workerinput", {}).get("workercount", 1)  # of pytest-xdist
    if bootstrap is not None and exact_names and workers > 1:
        pytest.fail(_SEVERAL_WORKERS, pytrace=False)
    properties = _properties_of_session(request)
    with _in_one_line():
        session = Session.open(properties, bootstrap, exact_names=exact_names)
    try:
        yield session
    finally:
        with _in_one_line():
            session.close()


@pytest.fixture(scope="session")
def kafka_session(_kafka_of_session: Session) -> Kafka:
    """The handle of the session, for kafka_baseline."""
    return _kafka_of_session.kafka


@pytest.fixture
def kafka(
    request: pytest.FixtureRequest,
    _kafka_of_session: Session,
    kafka_baseline: object,  # noqa: ARG001 - only its effects count
) -> Iterator[Kafka]:
    """A broker of Kafka's protocol for this test, with a clean state; `odradek.testing.Kafka` has its methods."""
    if dict(request.getfixturevalue("kafka_properties")) != _kafka_of_session.properties:
        pytest.fail(_OTHER_PROPERTIES, pytrace=False)
    with _in_one_line(), _kafka_of_session.isolate() as handle:
        yield handle


@pytest.fixture
def kafka_for_class(request: pytest.FixtureRequest, kafka: Kafka) -> None:
    """Set the attribute `kafka` of the test's class: `@pytest.mark.usefixtures("kafka_for_class")`."""
    request.cls.kafka = kafka


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_properties: Properties) -> Iterator[ThreadedBroker]:
    """A broker for this test alone."""
    yield from _broker(request, kafka_properties)


@pytest.fixture(scope="session")
def kafka_session_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A broker for the whole session; tests use different names of topics."""
    yield from _broker(request, _properties_of_session(request))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add topics, groups and the last requests to the report of a failed test."""
    report = yield
    if report.failed and call.when == "call" and (handle := _handle_of(item)) is not None:
        report.sections.append((f"kafka at {handle.bootstrap}", handle.aio.loop.run(handle.aio.describe())))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that passed although a fault that it made never happened: it shows nothing about the fault."""
    result = yield
    handle = _handle_of(item)
    if handle is not None and (unused := handle.aio.cluster.unused_rules()):
        pytest.fail("a fault never happened (optional=True allows that): " + "; ".join(unused), pytrace=False)
    return result


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Fail with the message of a cluster's error alone: our lines and the client's say no more than it."""
    from odradek.client.errors import ClientError
    from odradek.testing.errors import KafkaTimeoutError

    try:
        yield
    except (ClientError, KafkaTimeoutError) as error:
        pytest.fail(str(error), pytrace=False)


def _handle_of(item: pytest.Item) -> Kafka | None:
    """Return the handle of a test with the fixture `kafka`, unless that is another plugin's."""
    handle = getattr(item, "funcargs", {}).get("kafka")
    if handle is None or "odradek.testing.session" not in sys.modules:
        return None
    from odradek.testing.kafka import Kafka

    return handle if isinstance(handle, Kafka) else None


_OTHER_PROPERTIES = (
    "the fixture kafka is one broker for the session, which has started with other kafka_properties: override them"
    " once, in the top-level conftest.py, or use kafka_broker, which starts a broker with the properties of this test"
)
_SEVERAL_WORKERS = (
    "with --kafka-exact-names all tests use the same names of topics in one cluster, so several workers of pytest-xdist"
    " would delete each other's topics: run with -n 0, or without --kafka-exact-names"
)
_NARROW_SCOPE = (
    'kafka_properties has a narrower scope than the broker of the session: override it with scope="session", or use'
    " kafka_broker, which starts a broker for each test"
)


def _properties_of_session(request: pytest.FixtureRequest) -> Any:
    try:
        return request.getfixturevalue("kafka_properties")
    except pytest.fail.Exception as error:
        if "ScopeMismatch" not in str(error):
            raise
    pytest.fail(_NARROW_SCOPE, pytrace=False)


def _broker(request: pytest.FixtureRequest, properties: Properties) -> Iterator[ThreadedBroker]:
    from odradek.broker.testing.threaded import ThreadedBroker

    if bootstrap := request.config.getoption("--kafka"):
        pytest.skip(f"this fixture starts a broker of Odradek, and --kafka={bootstrap} names another cluster")
    with ThreadedBroker(properties) as broker:
        yield broker
