from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from odradek.broker.testing.threaded import ThreadedBroker
from tests.testing.suites import PLUGIN, REPOSITORY, run_pytest, run_suite


def test_each_test_begins_without_the_topics_and_groups_of_the_one_before(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import confluent_kafka
        import pytest

        @pytest.mark.parametrize("time", range(3))
        def test_topic(kafka, time):
            assert kafka.describe().startswith("no topics and no groups")
            kafka.topic("orders")
            kafka.produce("orders", [b"three socks"])
            settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
            consumer = confluent_kafka.Consumer(settings)
            consumer.subscribe(["orders"])
            assert consumer.poll(10).value() == b"three socks"
            consumer.close()
            kafka.wait_for_lag_zero("g")
            assert [record.value for record in kafka.records("orders")] == [b"three socks"]
    """)
    run_suite(pytester).assert_outcomes(passed=3)


def test_tests_share_one_broker_and_the_baseline_is_created_once(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_baseline(kafka_session):
            kafka_session.topic("prices", partitions=2)
            kafka_session.produce("prices", [(b"socks", b"3")])
    """)
    pytester.makepyfile("""
        import pytest

        ports = set()

        @pytest.mark.parametrize("time", range(2))
        def test_baseline(kafka, time):
            ports.add(kafka.bootstrap)
            assert len(ports) == 1
            assert [(record.key, record.value) for record in kafka.records("prices")] == [(b"socks", b"3")]
            assert kafka.topic("prices") == "prices"
            kafka.topic("orders")
    """)
    run_suite(pytester).assert_outcomes(passed=2)


def test_properties_may_be_numbers_and_booleans(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import confluent_kafka
        import pytest

        @pytest.fixture(scope="session")
        def kafka_properties():
            return {"num.partitions": 3, "auto.create.topics.enable": True, "message.max.bytes": "2000"}

        @pytest.mark.parametrize("name", ["kafka", "kafka_broker", "kafka_session_broker"])
        def test_partitions(name, request):
            bootstrap = request.getfixturevalue(name).bootstrap
            producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
            producer.produce("t", b"a")
            producer.flush()
            assert len(producer.list_topics(timeout=10).topics["t"].partitions) == 3
    """)
    run_suite(pytester).assert_outcomes(passed=3)


@pytest.mark.parametrize("name", ["kafka", "kafka_broker", "kafka_session_broker"])
def test_an_unknown_property_is_refused_by_name_with_a_suggestion(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_properties():
            return {{"num.partition": 3}}

        def test_it({name}):
            pass
    """)
    result = run_suite(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*num.partition*did you mean num.partitions?*"])


def test_a_broker_for_one_test_takes_properties_of_any_scope(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(params=[1, 2])
        def kafka_properties(request):
            return {"num.partitions": request.param}

        def test_it(kafka_broker, kafka_properties):
            assert kafka_broker.broker.config.num_partitions == kafka_properties["num.partitions"]
    """)
    run_suite(pytester).assert_outcomes(passed=2)


@pytest.mark.parametrize("name", ["kafka", "kafka_session_broker"])
def test_a_broker_of_the_session_says_why_it_takes_no_properties_of_a_test(
    pytester: pytest.Pytester, name: str
) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.fixture
        def kafka_properties():
            return {{"num.partitions": 3}}

        def test_it({name}):
            pass
    """)
    result = run_suite(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*override it with scope="session", or use kafka_broker*'])


def test_a_test_with_other_properties_than_the_running_broker_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a="def test_it(kafka): pass",
        test_b="""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_properties():
            return {"num.partitions": 3}

        def test_it(kafka):
            pass
        """,
    )
    result = run_suite(pytester)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*has started with other kafka_properties*"])


def test_a_failed_test_shows_topics_groups_and_the_last_requests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import confluent_kafka

        def test_it(kafka):
            kafka.topic("orders", partitions=2)
            settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "readers", "client.id": "shop"}
            consumer = confluent_kafka.Consumer(settings)
            consumer.subscribe(["orders"])
            while not consumer.assignment():
                consumer.poll(0.05)
            kafka.wait_for_members("readers", 1)
            try:
                assert kafka.records("orders") != []
            finally:
                consumer.close()
    """)
    result = run_suite(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- kafka at 127.0.0.1:* -*",
            "topic orders, offsets by partition: 0: 0–0, 1: 0–0",
            "group readers: Empty, classic, 0 members",
            "last requests, the newest at the end:",
            '  * JoinGroup v* "shop" for readers: answered *',
            '  * LeaveGroup v* "shop" for readers: answered *',
        ]
    )


def test_an_error_shows_the_lines_of_the_test_and_none_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("call", [
            lambda kafka: kafka.wait_for_records("orders", 1, timeout=0.05),
            lambda kafka: kafka.wait_for_lag_zero("readers", timeout=0.05),
            lambda kafka: kafka.wait_for_members("readers", 1, timeout=0.05),
            lambda kafka: kafka.assert_no_records("orders", seconds=0),
            lambda kafka: kafka.records("orders"),
            lambda kafka: kafka.topic("or/ders"),
            lambda kafka: kafka.topic("orders", partitions="3"),
            lambda kafka: kafka.produce("orders", ["text"]),
            lambda kafka: kafka.clock.advance(5),
            lambda kafka: kafka.clock.expire_member("readers", "shop"),
            lambda kafka: kafka.restore(None),
            lambda kafka: kafka.faults.fail("Produc", "X"),
        ])
        def test_blocking(kafka, call):
            call(kafka)

        @pytest.mark.asyncio
        @pytest.mark.parametrize("call", [
            lambda kafka: kafka.wait_for_records("orders", 1, timeout=0.05),
            lambda kafka: kafka.clock.advance(5),
            lambda kafka: kafka.restore(None),
            lambda kafka: kafka.records("orders"),
        ])
        async def test_awaiting(kafka, call):
            await call(kafka.aio)

        def test_where(kafka):
            kafka.produce(kafka.topic("orders"), [b"a"])
            kafka.wait_for_records("orders", 1, where=lambda record: record.offset / 0)
    """)
    result = run_suite(pytester)
    result.assert_outcomes(failed=17)
    result.stdout.no_re_match_line(r".*\.py:\d+: in ")  # a frame of another file than the test's
    files = {line.partition(".py:")[0] for line in result.outlines if re.match(r"\S+\.py:\d+: ", line)}
    assert files == {
        Path(__file__).stem.replace("test_plugin", "test_an_error_shows_the_lines_of_the_test_and_none_of_ours")
    }


def test_a_passed_test_shows_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(kafka): kafka.topic('orders')")
    result = run_suite(pytester, "-rA")
    result.assert_outcomes(passed=1)
    assert "last requests" not in result.stdout.str()


def test_a_unittest_case_has_the_handle_as_an_attribute(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import unittest

        import pytest


        @pytest.mark.usefixtures("kafka_for_class")
        class OrderTests(unittest.TestCase):
            def test_one(self):
                self.kafka.topic("orders")
                self.assertEqual(self.kafka.records("orders"), [])

            def test_another(self):
                self.assertNotIn("orders", self.kafka.describe().partition("last requests")[0])


        class WithAutouse(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _use(self, kafka):
                self.broker = kafka

            def test_it(self):
                self.assertEqual(self.broker.topic("orders"), "orders")
    """)
    run_suite(pytester).assert_outcomes(passed=3)


def test_tests_with_an_event_loop_use_the_twin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import asyncio

        import pytest


        async def use(kafka):
            await kafka.aio.topic("orders")
            waiting = asyncio.create_task(kafka.aio.wait_for_records("orders", 1))
            await kafka.aio.produce("orders", [b"a"])
            assert [record.value for record in await waiting] == [b"a"]
            with pytest.raises(RuntimeError, match=r"write `await kafka.aio.records\\(…\\)`"):
                kafka.records("orders")


        @pytest.mark.asyncio
        async def test_with_pytest_asyncio(kafka):
            await use(kafka)


        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_with_anyio(kafka, anyio_backend):
            await use(kafka)


        def test_without_a_loop(kafka):
            asyncio.run(use(kafka))
    """)
    run_suite(pytester, "-p", "anyio").assert_outcomes(passed=3)


OLD = "odradek.broker.testing.plugin"


@pytest.mark.parametrize("name", [OLD, PLUGIN])
@pytest.mark.parametrize("arguments", [("-p", PLUGIN), ("-p", f"no:{PLUGIN}"), ()])
def test_a_conftest_may_name_the_plugin_too(pytester: pytest.Pytester, name: str, arguments: tuple[str, ...]) -> None:
    pytester.makeconftest(f"pytest_plugins = ['{name}']")
    pytester.makepyfile("def test_it(): pass")
    run_pytest(pytester, *arguments).assert_outcomes(passed=1)


def test_the_entry_point_has_the_name_of_its_module() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}


@pytest.mark.process
def test_importing_the_plugin_loads_nothing_but_pytest() -> None:
    def loaded(program: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
            cwd=REPOSITORY, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return set(done.stdout.split())

    ours = {"odradek", "odradek.testing", PLUGIN}
    assert loaded(f"import {PLUGIN}") - loaded("import pytest") == ours
    assert loaded(f"import {OLD}") - loaded("import pytest") == {
        "odradek", "odradek.broker", "odradek.broker.testing", OLD
    }  # fmt: skip


@pytest.mark.process
def test_each_worker_of_xdist_has_a_broker_of_its_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("""
        import pathlib

        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(kafka, number, worker_id):
            assert kafka.records(kafka.topic("orders")) == []
            kafka.produce("orders", [b"a"])
            with (pathlib.Path(__file__).parent / worker_id).open("a") as brokers:
                print(kafka.bootstrap, file=brokers)
    """)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    pytester.runpytest_subprocess("-p", PLUGIN, "-n", "2").assert_outcomes(passed=4)
    brokers = [set(path.read_text().split()) for path in pytester.path.glob("gw*")]
    assert [len(each) for each in brokers] == [1, 1]
    assert brokers[0] != brokers[1]


def test_brokers_of_two_fixtures_are_different(
    kafka_broker: ThreadedBroker, kafka_session_broker: ThreadedBroker
) -> None:
    assert kafka_broker.port != kafka_session_broker.port


def test_a_fault_that_never_happened_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_forgotten(kafka):
            kafka.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders")

        def test_optional(kafka):
            kafka.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", optional=True)

        def test_next(kafka):
            assert kafka.faults.rules == []
        """
    )
    result = run_suite(pytester)
    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(
        ["*a fault never happened*fail Produce with NOT_LEADER_OR_FOLLOWER (topic=orders): 0 hits*"]
    )
