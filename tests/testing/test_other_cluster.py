from __future__ import annotations

import re

import pytest

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic
from odradek.testing import clients
from tests.testing.suites import run_suite

SUITE = """
    import pytest

    names = set()

    @pytest.fixture(scope="session")
    def kafka_baseline(kafka_session):
        kafka_session.topic("prices", partitions=2)
        kafka_session.produce("prices", [b"3"])

    @pytest.mark.parametrize("time", range(2))
    def test_orders(kafka, time):
        name = kafka.topic("orders")
        assert name.startswith("orders-")
        names.add(name)
        assert len(names) == time + 1
        assert kafka.topic("orders") == name
        kafka.produce("orders", [b"a"])
        kafka.produce(name, [b"b"])
        assert [record.value for record in kafka.wait_for_records("orders", 2)] == [b"a", b"b"]
        assert [record.value for record in kafka.records(name)] == [b"a", b"b"]
        assert [record.topic for record in kafka.records("prices")] == [kafka.topic("prices")]

    def test_a_broker_of_its_own(kafka_broker):
        pass

    def test_a_broker_of_the_session(kafka_session_broker):
        pass
"""


async def topics_of(bootstrap: str) -> set[str]:
    async with Admin(bootstrap) as admin:
        return set(await admin.list_topics())


def test_the_same_tests_run_against_any_cluster_and_leave_it_as_it_was(
    pytester: pytest.Pytester, kafka_broker: ThreadedBroker
) -> None:
    async def create() -> None:
        async with Admin(kafka_broker.bootstrap) as admin:
            await admin.create_topics([NewTopic("orders", 1), NewTopic("theirs", 1)])

    kafka_broker.run(create())
    pytester.makepyfile(SUITE)
    result = run_suite(pytester, "-ra", f"--kafka={kafka_broker.bootstrap}")

    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines([f"SKIPPED*--kafka={kafka_broker.bootstrap} names another cluster"])
    assert kafka_broker.run(topics_of(kafka_broker.bootstrap)) == {"orders", "theirs"}


def test_a_failed_test_shows_the_cluster_but_no_requests(
    pytester: pytest.Pytester, kafka_broker: ThreadedBroker
) -> None:
    pytester.makepyfile("""
        import pytest

        def test_it(kafka):
            kafka.topic("orders")
            with pytest.raises(TimeoutError):
                kafka.wait_for_lag_zero("readers", timeout=0.05)
            assert False
    """)
    result = run_suite(pytester, "-ra", f"--kafka={kafka_broker.bootstrap}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f"*- kafka at {kafka_broker.bootstrap} -*",
            "topic orders-????????, offsets by partition: 0: 0–0",
            f"the requests at {kafka_broker.bootstrap} are not known: it is not this process's broker",
        ]
    )


def test_what_needs_our_broker_skips_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from odradek.testing.errors import NeedsOwnBrokerError

        def test_it():
            raise NeedsOwnBrokerError("kafka.snapshot()", "elsewhere:9092")
    """)
    result = run_suite(pytester, "-ra")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["SKIPPED*kafka.snapshot() needs the broker of Odradek, and --kafka=elsewhere:9092 names another cluster"]
    )


PROGRAM = """
    import confluent_kafka
    import pytest

    def send(bootstrap, topic):
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b"three socks")
        producer.flush()

    def fail(wait):
        with pytest.raises(TimeoutError) as raised:
            wait()
        return str(raised.value)
"""


def mistake(topic: str, evidence: str) -> str:
    """What a failure says about a program that used the name as it is written in the test: a regular expression."""
    return (
        rf"the program used {topic}, {evidence}; this test's topic is ({topic}-[0-9a-f]{{8}}): give the program the"
        r" name that kafka\.topic returned, or, if only tests use this cluster, run with --kafka-exact-names\n"
    )


@pytest.mark.parametrize(
    "wait", ['kafka.wait_for_records("orders", 2, timeout=0.05)', 'kafka.wait_for_lag_zero("shop", timeout=0.05)']
)
@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_wait_tells_that_the_program_used_the_name_of_the_test_itself(
    pytester: pytest.Pytester, kafka_broker: ThreadedBroker, wait: str, exists: bool
) -> None:
    async def create() -> None:
        async with Admin(kafka_broker.bootstrap) as admin:
            await admin.create_topics([NewTopic("orders", 1)])

    if exists:
        kafka_broker.run(create())
    evidence = "which has new records" if exists else "which did not exist before"
    pytester.makepyfile(f"""{PROGRAM}
    def test_it(kafka):
        import re
        name = kafka.topic("orders")
        assert "the program used" not in fail(lambda: {wait})
        send(kafka.bootstrap, name)
        send(kafka.bootstrap, "others")
        assert "the program used" not in kafka.describe()
        send(kafka.bootstrap, "orders")
        assert re.search({mistake("orders", evidence)!r}, fail(lambda: {wait}))[1] == name

    def test_of_another_test_it_says_nothing(kafka):
        kafka.topic("orders")
        assert "the program used" not in fail(lambda: {wait})
    """)
    run_suite(pytester, f"--kafka={kafka_broker.bootstrap}").assert_outcomes(passed=2)


def test_a_failed_test_tells_it_too_and_of_topics_of_the_baseline(
    pytester: pytest.Pytester, kafka_broker: ThreadedBroker
) -> None:
    pytester.makepyfile(f"""{PROGRAM}
    @pytest.fixture(scope="session")
    def kafka_baseline(kafka_session):
        kafka_session.topic("prices")

    def test_one(kafka):
        send(kafka.bootstrap, "prices")
        assert kafka.records("prices") != []

    def test_another(kafka):
        assert "the program used" not in kafka.describe()
    """)
    result = run_suite(pytester, "-ra", f"--kafka={kafka_broker.bootstrap}")
    result.assert_outcomes(passed=1, failed=1)
    assert re.search(mistake("prices", "which did not exist before"), result.stdout.str())


@pytest.mark.parametrize(("options", "outcomes"), [([], {"failed": 1}), (["--kafka-exact-names"], {"errors": 1})])
def test_a_cluster_that_is_not_there_is_told_in_one_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: list[str], outcomes: dict[str, int]
) -> None:
    monkeypatch.setitem(clients.SETTINGS, "request_timeout_ms", 100)
    with ThreadedBroker() as broker:
        bootstrap = broker.bootstrap
    pytester.makepyfile("def test_it(kafka): kafka.topic('orders')")
    result = run_suite(pytester, f"--kafka={bootstrap}", *options)
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines([f"*find the cluster: {bootstrap}: connection refused. Check the bootstrap servers*"])
    result.stdout.no_re_match_line(r".*\.py:\d+: in ")
    result.stdout.no_re_match_line(r".*File .*odradek")
