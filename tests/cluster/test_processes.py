"""Real clients of a cluster of processes, of which some die, stop or stall.

The cluster is started once for all tests of this file. Each test begins with a healthy one, and at its end every record
that was ever acknowledged is once at its offset, and all replicas are equal.
"""

from __future__ import annotations

import functools
import gc
import itertools
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.cluster import members, transactional, writers
from tests.cluster.brokers import LIMIT, OFFSETS_PARTITIONS, TRANSACTION, Brokers, PartitionView, running, wait_until
from tests.cluster.comparison import Acknowledged, read
from tests.cluster.members import fetch_offsets, is_at_least
from tests.cluster.transactional import TransactionalProducer
from tests.cluster.writers import PARTITIONS, Writer
from tests.peers import etcd

pytestmark = [
    *etcd.MARKS,
    # kafka-python 3.0 leaves the sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings(r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"),
]

CreateTopic = Callable[..., str]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with running(tmp_path_factory.mktemp("cluster")) as brokers:
        yield brokers
    gc.collect()  # what kafka-python has left


@pytest.fixture
def brokers(started: Brokers) -> Brokers:
    started.heal()
    return started


@pytest.fixture(scope="module")
def acknowledged() -> Acknowledged:
    return Acknowledged()


@pytest.fixture(scope="module")
def admin(started: Brokers) -> AdminClient:
    return AdminClient({"bootstrap.servers": started.bootstrap, "log_level": 0})


TIME_LIMITS = {"operation_timeout": LIMIT, "request_timeout": LIMIT}


@pytest.fixture
def create(admin: AdminClient) -> CreateTopic:
    def create(replicas: int = 3, partitions: int = PARTITIONS, name: str | None = None) -> str:
        name = name or f"t{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, partitions, replicas)], **TIME_LIMITS)[name].result(LIMIT)
        return name

    return create


def isrs(brokers: Brokers, topic: str) -> list[set[int]]:
    return [set(each.isr) for each in brokers.view().topics[topic]]


def others(brokers: Brokers, node_id: int) -> list[int]:
    return [each for each in brokers.servers if each != node_id]


def test_producers_of_all_clients_survive_the_death_of_a_leader(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged, tmp_path: Path
) -> None:
    each_client: list[Writer] = [
        writers.Librdkafka(brokers.bootstrap, create()),
        writers.KafkaPython(brokers.bootstrap, create()),
        writers.Aiokafka(brokers.bootstrap, create()),
        writers.Java(brokers.bootstrap, create(), tmp_path),
    ]
    with ExitStack() as stack:
        for writer in each_client:
            stack.enter_context(writer)
        for writer in each_client:
            writer.await_progress()
        dead = brokers.leader(each_client[0].topic)

        brokers.kill(dead)

        brokers.wait_until_led_by_others([dead])
        for writer in each_client:
            writer.await_progress()
        brokers.heal()
        for writer in each_client:
            writer.await_progress()
    acknowledged.add(*each_client)
    acknowledged.check(brokers)


def test_every_broker_may_die_in_turn(brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged) -> None:
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        for dead in brokers.servers:
            writer.await_progress()
            brokers.kill(dead)
            brokers.wait_until_led_by_others([dead])
            writer.await_progress()
            brokers.heal()
    acknowledged.add(writer)
    acknowledged.check(brokers)


@pytest.mark.parametrize("client", [writers.Librdkafka, writers.Aiokafka, writers.KafkaPython])
def test_a_leader_that_stops_leaves_its_partitions_first(
    client: type[Writer], brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    with client(brokers.bootstrap, create()) as writer:
        writer.await_progress()
        leader = brokers.leader(writer.topic)

        assert brokers.servers[leader].stop(LIMIT) == 0

        assert all(each.leader != leader for each in brokers.view(others(brokers, leader)[0]).topics[writer.topic])
        writer.await_progress()
    acknowledged.add(writer)
    acknowledged.check(brokers)


def test_a_paused_leader_is_replaced_and_follows_when_it_goes_on(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        writer.await_progress()
        leader = brokers.leader(writer.topic)

        brokers.pause(leader)

        brokers.wait_until_led_by_others([leader])
        writer.await_progress()
        brokers.resume(leader)
        writer.await_progress()
    acknowledged.add(writer)
    acknowledged.check(brokers)


def test_another_broker_is_the_controller_when_the_controller_dies(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        writer.await_progress()
        dead = brokers.controller()

        brokers.kill(dead)

        assert brokers.controller() != dead
        brokers.wait_until_led_by_others([dead])
        create()
        writer.await_progress()
    acknowledged.add(writer)
    acknowledged.check(brokers)


def test_groups_of_all_clients_survive_the_death_of_their_coordinator(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    with ExitStack() as stack:
        writer = stack.enter_context(writers.Librdkafka(brokers.bootstrap, create()))
        writer.await_progress()
        each_client = [
            stack.enter_context(kind(brokers.bootstrap, group_of_partition_0(kind.__name__), writer.topic))
            for kind in (members.Librdkafka, members.KafkaPython, members.Aiokafka, members.Java)
        ]
        for member in each_client:
            member.await_commits(ends(writer))
        before = {member.group: dict(member.committed) for member in each_client}

        brokers.kill(brokers.coordinator(each_client[0].group))

        for group, committed in before.items():
            found = wait_until(lambda: fetch_offsets(brokers.bootstrap, group, writer.topic))  # noqa: B023
            assert is_at_least(found, committed)
        for again in range(2):
            writer.await_progress()
            for member in each_client:
                member.await_commits(ends(writer))
            if not again:
                brokers.heal()
    for member in each_client:
        assert is_at_least(fetch_offsets(brokers.bootstrap, member.group, writer.topic), member.committed)
    acknowledged.add(writer)
    acknowledged.check(brokers)


def test_transactions_survive_the_death_of_their_coordinator(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    ids = {kind: group_of_partition_0(kind.__name__) for kind in (transactional.Librdkafka, transactional.Bundled)}
    with ExitStack() as stack:
        producers: list[TransactionalProducer] = [
            stack.enter_context(kind(brokers.bootstrap, create(), name)) for kind, name in ids.items()
        ]
        for number in range(2):
            coordinator = brokers.coordinator(ids[transactional.Bundled], TRANSACTION)
            for producer in producers:
                producer.write(b"committed %d" % number)
                if number:
                    producer.commit()  # the markers may still be under way

            brokers.kill(coordinator)

            if not number:
                for producer in producers:
                    producer.commit()
            for producer in producers:
                producer.write(b"aborted %d" % number)
                producer.abort()
            brokers.heal()
    for producer in producers:
        assert transactional.committed(brokers.bootstrap, producer.topic) == [
            [b"committed 0", b"committed 1"] for _ in range(PARTITIONS)
        ]
    assert [sorted(each.replicas) for each in brokers.view().topics["__transaction_state"]] == [[1, 2, 3]] * 3
    acknowledged.check(brokers)


def group_of_partition_0(prefix: str) -> str:
    """Return a new name of a group whose coordinator is the leader of partition 0 of `__consumer_offsets`."""
    names = (f"{prefix}-{number}" for number in itertools.count(random.randrange(1_000_000)))
    return next(name for name in names if _java_hash(name) % OFFSETS_PARTITIONS == 0)


def _java_hash(text: str) -> int:
    """String.hashCode as Kafka uses it: without the sign."""
    return functools.reduce(lambda value, character: (31 * value + ord(character)) & 0xFFFFFFFF, text, 0) & 0x7FFFFFFF


def ends(writer: Writer) -> dict[int, int]:
    """Return the offset after the last acknowledged record of each partition."""
    found: dict[int, int] = {}
    for partition, offset in writer.acknowledged.copy().values():
        found[partition] = max(found.get(partition, 0), offset + 1)
    return found


def test_one_of_three_refuses_writes_until_another_returns(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        writer.await_progress()
        survivor = others(brokers, brokers.leader(writer.topic))[0]

        brokers.kill(*others(brokers, survivor))

        wait_until(lambda: isrs(brokers, writer.topic) == [{survivor}] * PARTITIONS)
        alone = brokers.servers[survivor].bootstrap
        wait_until(lambda: error_of_one_attempt(alone, writer.topic) == KafkaError.NOT_ENOUGH_REPLICAS)
        brokers.heal()
        writer.await_progress()
    acknowledged.add(writer)
    acknowledged.check(brokers)
    assert b"refused" not in read(brokers.bootstrap, writer.topic)


def error_of_one_attempt(bootstrap: str, topic: str) -> int | None:
    """Return the code of the error of one write that is not repeated."""
    codes: list[int | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "log_level": 0})
    producer.produce(
        topic, b"refused", partition=0, on_delivery=lambda error, _: codes.append(error.code() if error else None)
    )
    assert producer.flush(LIMIT) == 0
    return codes[0]


def test_a_dead_member_of_etcd_is_not_missed(brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged) -> None:
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        writer.await_progress()

        brokers.etcd.leader.kill()

        writer.await_progress()
        with writers.Librdkafka(brokers.bootstrap, create()) as writer_of_a_new_topic:
            writer_of_a_new_topic.await_progress()
    acknowledged.add(writer, writer_of_a_new_topic)
    acknowledged.check(brokers)


def test_clients_do_not_miss_etcd_unless_they_change_topics(
    brokers: Brokers, create: CreateTopic, admin: AdminClient, acknowledged: Acknowledged
) -> None:
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        writer.await_progress()
        group = f"etcd-away-{uuid.uuid4().hex[:8]}"
        with members.Librdkafka(brokers.bootstrap, group, writer.topic) as member:
            member.await_commits(ends(writer))

            for each in brokers.etcd.members:
                each.kill()

            assert error_of_creation(admin, "never") == KafkaError.REQUEST_TIMED_OUT
            writer.await_progress()
            member.await_commits(ends(writer))
            brokers.heal()
            writer.await_progress()
            member.await_commits(ends(writer))
    acknowledged.add(writer)
    acknowledged.check(brokers)


def error_of_creation(admin: AdminClient, topic: str) -> int:
    """Return the code of the error of a request that waits for two session time-outs of the brokers."""
    creating = admin.create_topics([NewTopic(topic, 1, 3)], operation_timeout=6, request_timeout=LIMIT)
    with pytest.raises(KafkaException) as raised:
        creating[topic].result(LIMIT)
    code: int = raised.value.args[0].code()
    return code


def test_everything_is_there_when_all_brokers_have_died_at_once(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    group = f"restarted-{uuid.uuid4().hex[:8]}"
    with writers.Librdkafka(brokers.bootstrap, create()) as writer:
        writer.await_progress()
        with members.Librdkafka(brokers.bootstrap, group, writer.topic) as member:
            member.await_commits(ends(writer))

        brokers.kill(*brokers.servers)

        brokers.heal()
        writer.await_progress()
        found = wait_until(lambda: fetch_offsets(brokers.bootstrap, group, writer.topic))
        assert is_at_least(found, member.committed)
    acknowledged.add(writer)
    acknowledged.check(brokers)


def test_a_partition_without_other_replicas_is_offline_until_its_broker_returns(
    brokers: Brokers, create: CreateTopic, acknowledged: Acknowledged
) -> None:
    with writers.Librdkafka(brokers.bootstrap, create(replicas=1)) as writer:
        writer.await_progress()
        dead = brokers.leader(writer.topic)

        brokers.kill(dead)

        offline = PartitionView(-1, (dead,), (dead,))
        wait_until(lambda: brokers.view().topics[writer.topic][0] == offline)
        brokers.heal()
        writer.await_progress()
    acknowledged.add(writer)
    acknowledged.check(brokers)


def test_a_returning_broker_learns_of_topics_that_were_deleted_created_and_grown(
    brokers: Brokers, create: CreateTopic, admin: AdminClient, acknowledged: Acknowledged
) -> None:
    deleted, recreated, grown = create(), create(), create(partitions=1)
    for topic in (deleted, recreated):
        with writers.Librdkafka(brokers.bootstrap, topic) as writer:
            writer.await_progress()
    brokers.heal()
    away = brokers.leader(recreated)
    old_directory = brokers.servers[away].log_dir / f"{deleted}-0"
    assert old_directory.exists()

    brokers.kill(away)
    for future in admin.delete_topics([deleted, recreated], **TIME_LIMITS).values():
        future.result(LIMIT)
    created = create()
    create(name=recreated)
    admin.create_partitions([NewPartitions(grown, PARTITIONS)], **TIME_LIMITS)[grown].result(LIMIT)
    with ExitStack() as stack:
        each_topic = [
            stack.enter_context(writers.Librdkafka(brokers.bootstrap, topic)) for topic in (recreated, created, grown)
        ]
        for writer in each_topic:
            writer.await_progress()
        brokers.heal()
        for writer in each_topic:
            writer.await_progress()

    wait_until(lambda: not old_directory.exists())
    acknowledged.add(*each_topic)
    acknowledged.check(brokers)
    assert read(brokers.bootstrap, recreated).keys() == each_topic[0].acknowledged.keys()
