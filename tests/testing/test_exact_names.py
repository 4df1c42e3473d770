from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import confluent_kafka
import pytest

from odradek.broker.testing.faults import BlockingFaults
from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic
from odradek.testing import KafkaTimeoutError, exact_names
from odradek.testing.clients import Clients
from odradek.testing.exact_names import ExactNames
from tests.testing.suites import PLUGIN, REPOSITORY, run_suite

PROGRAM = """
    import confluent_kafka
    import pytest

    def send(bootstrap, topic, value):
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, value)
        producer.flush()

    def consume(bootstrap, topic, group):
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe([topic])
        value = consumer.poll(10).value()
        consumer.close()
        return value
"""

SUITE = f"""{PROGRAM}
    @pytest.fixture(scope="session")
    def kafka_baseline(kafka_session):
        assert kafka_session.topic("prices", partitions=2) == "prices"
        kafka_session.produce("prices", [b"3"])
        consume(kafka_session.bootstrap, "prices", "price-readers")

    @pytest.mark.parametrize("time", range(3))
    def test_orders(kafka, time):
        assert "group shop" not in kafka.describe()
        assert kafka.topic("orders", partitions=time + 1) == "orders"
        assert kafka.records("orders") == []
        send(kafka.bootstrap, "orders", b"three socks")
        assert consume(kafka.bootstrap, "orders", "shop") == b"three socks"
        send(kafka.bootstrap, "confirmations", b"%d" % time)
        assert [record.value for record in kafka.wait_for_records("confirmations", 1)] == [b"%d" % time]
        kafka.wait_for_lag_zero("shop")
        assert [record.value for record in kafka.records("prices")] == [b"3"]
        kafka.wait_for_lag_zero("price-readers")
"""


def run_exact(pytester: pytest.Pytester, broker: ThreadedBroker) -> pytest.RunResult:
    return run_suite(pytester, "-ra", f"--kafka={broker.bootstrap}", "--kafka-exact-names")


def with_admin(broker: ThreadedBroker, use: Callable[[Admin], Awaitable[object]]) -> None:
    async def call() -> None:
        async with Admin(broker.bootstrap) as admin:
            await use(admin)

    broker.run(call())


def content(broker: ThreadedBroker) -> dict[str, str]:
    """The topics with their ids, and the groups."""
    found: dict[str, str] = {}

    async def read(admin: Admin) -> None:
        found.update((name, topic.topic_id) for name, topic in (await admin.list_topics()).items())
        found.update((name, "group") for name in await admin.list_groups())

    with_admin(broker, read)
    return found


@pytest.fixture
def cluster(kafka_broker: ThreadedBroker) -> ThreadedBroker:
    """A broker with a topic and a group of others."""
    with_admin(kafka_broker, lambda admin: admin.create_topics([NewTopic("theirs", 1)]))
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": "they"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.commit(offsets=[confluent_kafka.TopicPartition("theirs", 0, 0)], asynchronous=False)
    consumer.close()
    return kafka_broker


def test_topics_have_their_exact_names_and_the_cluster_is_left_as_it_was(
    pytester: pytest.Pytester, cluster: ThreadedBroker
) -> None:
    before = content(cluster)
    assert set(before) == {"theirs", "they"}
    pytester.makepyfile(SUITE)
    run_exact(pytester, cluster).assert_outcomes(passed=3)
    assert content(cluster) == before


def test_a_topic_that_is_older_than_the_tests_is_refused_and_stays(
    pytester: pytest.Pytester, cluster: ThreadedBroker
) -> None:
    before = content(cluster)
    pytester.makepyfile("""
        import pytest

        def test_it(kafka):
            kafka.topic("orders")
            with pytest.raises(ValueError) as raised:
                kafka.topic("theirs")
            print("refused:", raised.value)
            assert kafka.records("theirs") == []
            assert False
    """)
    result = run_exact(pytester, cluster)
    result.assert_outcomes(failed=1)
    complaint = (
        f"refused: the topic theirs was at {cluster.bootstrap} before the first test, so the tests may neither change"
        " nor delete it: delete it yourself if an earlier run was killed and left it, or run without"
        " --kafka-exact-names"
    )
    result.stdout.fnmatch_lines([complaint])
    assert content(cluster) == before


def test_a_topic_that_a_test_deletes_and_makes_again_is_one_of_the_test(
    pytester: pytest.Pytester, cluster: ThreadedBroker
) -> None:
    pytester.makepyfile("""
        from confluent_kafka.admin import AdminClient, NewTopic

        def test_it(kafka):
            kafka.topic("orders")
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
            for future in admin.delete_topics(["theirs", "orders"]).values():
                future.result()
            for future in admin.create_topics([NewTopic("theirs", 1, 1), NewTopic("orders", 1, 1)]).values():
                future.result()
    """)
    run_exact(pytester, cluster).assert_outcomes(passed=1)
    assert content(cluster) == {"they": "group"}


def test_state_of_the_cluster_itself_stays_although_it_is_not_marked_as_internal(
    pytester: pytest.Pytester, cluster: ThreadedBroker
) -> None:
    pytester.makepyfile(f"""{PROGRAM}
    def test_it(kafka):
        send(kafka.bootstrap, "__remote_log_metadata", b"a")
        kafka.topic("__mine")
    """)
    run_exact(pytester, cluster).assert_outcomes(passed=1)
    assert set(content(cluster)) == {"theirs", "they", "__remote_log_metadata"}


def test_a_group_with_members_stays_until_it_has_none(pytester: pytest.Pytester, cluster: ThreadedBroker) -> None:
    pytester.makepyfile(f"""{PROGRAM}
    consumers = []

    def test_one(kafka):
        settings = {{"bootstrap.servers": kafka.bootstrap, "group.id": "shop"}}
        consumers.append(confluent_kafka.Consumer(settings))
        consumers[0].subscribe([kafka.topic("orders")])
        while not consumers[0].assignment():
            consumers[0].poll(0.05)

    def test_another(kafka):
        assert "group shop: " in kafka.describe()
        consumers[0].close()
    """)
    run_exact(pytester, cluster).assert_outcomes(passed=2)
    assert set(content(cluster)) == {"theirs", "they"}


def test_without_a_cluster_the_option_changes_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_it(kafka, kafka_broker):
            assert kafka.topic("orders") == "orders"
            kafka.clock.advance(hours=1)
    """)
    run_suite(pytester, "--kafka-exact-names").assert_outcomes(passed=1)


@pytest.mark.process
def test_several_workers_are_refused_because_they_would_share_names(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kafka_broker: ThreadedBroker
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(2))
        def test_it(kafka, number):
            kafka.topic("orders")
    """)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    options = ["-p", PLUGIN, "-n", "2", f"--kafka={kafka_broker.bootstrap}", "--kafka-exact-names"]
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(errors=2)
    complaint = (
        "with --kafka-exact-names all tests use the same names of topics in one cluster, so several workers of"
        " pytest-xdist would delete each other's topics: run with -n 0, or without --kafka-exact-names"
    )
    result.stdout.fnmatch_lines([complaint])


async def _begin(cluster: ExactNames, clients: Clients) -> None:
    await cluster.begin_session(clients)
    await cluster.begin_test(clients)
    name = await cluster.name_to_create("orders", clients)
    await (await clients.admin()).create_topics([NewTopic(name, 1)])


@pytest.mark.parametrize("times", [1, 3])
def test_a_topic_that_comes_back_is_deleted_again(kafka_broker: ThreadedBroker, times: int) -> None:
    async def run() -> None:
        cluster, clients = ExactNames(kafka_broker.bootstrap), Clients(kafka_broker.bootstrap)
        await _begin(cluster, clients)
        await cluster.end_test(clients)
        await clients.close()

    rule = BlockingFaults(kafka_broker).fail("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION", times=times)
    kafka_broker.run(run())
    assert rule.hits == times
    assert content(kafka_broker) == {}


def test_a_topic_that_comes_back_for_ever_is_named(
    kafka_broker: ThreadedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_names, "_DELETION_SECONDS", 0.2)

    async def run() -> None:
        cluster, clients = ExactNames(kafka_broker.bootstrap), Clients(kafka_broker.bootstrap)
        await _begin(cluster, clients)
        try:
            await cluster.end_test(clients)
        finally:
            await clients.close()

    BlockingFaults(kafka_broker).fail("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION")
    complaint = (
        f"orders came back after each deletion at {kafka_broker.bootstrap} for 0.2 s: close the clients of a test"
        " before it ends, because those that go on create topics again"
    )
    with pytest.raises(KafkaTimeoutError, match=f"^{re.escape(complaint)}$"):
        kafka_broker.run(run())
