"""The pages of three brokers in one process, while one of them is down and after its return."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.broker.replicating import Cluster, three_brokers
from tests.metrics.collectors.scraping import Samples, of
from tests.wire import Wire

REPLICAS = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
FETCHERS = "kafka_server_replicafetchermanager_"
TOPICS = "kafka_server_brokertopicmetrics_"
# A slow machine must not make a follower lag: only a stop changes the in-sync sets.
PROPERTIES = {"metrics_port": "0", "replica_lag_time_max_ms": "600000"}
PREFERRED, UNCLEAN = 0, 1
UNCLEAN_ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections_total"


async def scrape(broker: Broker) -> Samples:
    async with Wire("127.0.0.1", broker.metrics_port) as connection:
        connection.writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        _, _, body = (await connection.reader.read()).partition(b"\r\n\r\n")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_text(body.decode())
        for sample in family.samples
    }


class Read:
    """The pages of all brokers at one time."""

    def __init__(self, pages: dict[int, Samples]) -> None:
        self._pages = pages

    def __call__(self, name: str, **labels: str) -> dict[int, float | None]:
        """The value of a series on each page; None where it is absent."""
        return {node: samples.get(of(name, **labels)) for node, samples in self._pages.items()}


class Pages:
    """A cluster whose brokers have pages. Topic `t` has three partitions, led by 1, 2 and 3, and needs two in sync."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def start(self, node_id: int) -> None:
        await self.cluster.start(node_id, **PROPERTIES)

    async def read(self) -> Read:
        """Scrape the page of every broker."""
        return Read({node: await scrape(broker) for node, broker in self.cluster.brokers.items()})

    async def elect(self, node_id: int, kind: int, topic: str, index: int) -> None:
        """Request an election from a broker, as an administrator does."""
        async with Wire("127.0.0.1", self.cluster.brokers[node_id].port) as wire:
            response = await wire.ask(ElectLeadersRequest(kind, [TopicPartitions(topic, [index])], 30_000), 2)
        [elected] = response.replica_election_results
        assert [row.error_code for row in elected.partition_result] == [ErrorCode.NONE]

    def in_sync(self, count: int) -> bool:
        """Whether every broker sees so many replicas in sync in each partition of `t`."""
        return all(
            len(partition.isr) == count
            for broker in self.cluster.brokers.values()
            for partition in broker.services.metadata.image.topics["t"].partitions
        )

    def are_led(self) -> bool:
        """Whether every partition of `t` is led, and its leader has applied the newest image."""
        brokers = self.cluster.brokers
        for broker in brokers.values():
            for index, state in enumerate(broker.services.metadata.image.topics["t"].partitions):
                if state.leader not in brokers:
                    return False
                partition = brokers[state.leader].services.partitions.led("t", index)
                if partition is None or partition.isr.keys() != state.isr.keys():
                    return False
        return True

    async def until_in_sync(self, count: int) -> None:
        await self.cluster.until(lambda: self.in_sync(count) and self.are_led())


@pytest.fixture
async def pages(tmp_path: Path) -> AsyncIterator[Pages]:
    async with three_brokers(tmp_path, **PROPERTIES) as cluster:
        made = Pages(cluster)
        await cluster.create(partitions=3, min_insync_replicas="2")
        await made.until_in_sync(3)
        yield made


async def test_a_healthy_cluster_has_only_zeros(pages: Pages) -> None:
    values = await pages.read()
    for name in (
        f"{REPLICAS}underreplicatedpartitions",
        f"{REPLICAS}underminisrpartitioncount",
        f"{REPLICAS}atminisrpartitioncount",
        f"{REPLICAS}offlinereplicacount",
        f"{REPLICAS}reassigningpartitions",
        f"{REPLICAS}isrshrinks_total",
        f"{REPLICAS}failedisrupdates_total",
        f"{CONTROLLER}offlinepartitionscount",
        f"{CONTROLLER}preferredreplicaimbalancecount",
        f"{CONTROLLER}fencedbrokercount",
        UNCLEAN_ELECTIONS,
    ):
        assert values(name) == {1: 0, 2: 0, 3: 0}, name
    assert values(f"{REPLICAS}leadercount") == {1: 1, 2: 1, 3: 1}
    assert values(f"{CONTROLLER}activecontrollercount") == {1: 1, 2: 0, 3: 0}
    assert values(f"{CONTROLLER}activebrokercount") == {1: 3, 2: 0, 3: 0}
    assert values(f"{CONTROLLER}globalpartitioncount") == {1: 3, 2: 0, 3: 0}
    for name in ("maxlag", "failedpartitionscount", "deadthreadcount"):
        assert values(f"{FETCHERS}{name}", clientId="Replica") == {1: 0, 2: 0, 3: 0}, name


async def test_a_stopped_broker_is_seen_on_the_pages_of_the_others_until_it_returns(pages: Pages) -> None:
    await pages.cluster.stop(3)
    await pages.until_in_sync(2)

    leaders = [each.leader for each in pages.cluster.brokers[1].services.metadata.image.topics["t"].partitions]
    led = {node: float(leaders.count(node)) for node in (1, 2)}
    values = await pages.read()
    assert values(f"{REPLICAS}underreplicatedpartitions") == led
    assert values(f"{REPLICAS}atminisrpartitioncount") == led
    assert values(f"{REPLICAS}underminisrpartitioncount") == {1: 0, 2: 0}
    assert values(f"{CONTROLLER}activebrokercount") == {1: 2, 2: 0}
    assert values(f"{CONTROLLER}fencedbrokercount") == {1: 1, 2: 0}
    assert values(f"{CONTROLLER}preferredreplicaimbalancecount") == {1: 1, 2: 0}
    assert values(f"{CONTROLLER}offlinepartitionscount") == {1: 0, 2: 0}

    await pages.start(3)
    await pages.until_in_sync(3)
    await pages.elect(1, PREFERRED, "t", 2)
    await pages.cluster.until(pages.are_led)
    values = await pages.read()

    for name in ("underreplicatedpartitions", "atminisrpartitioncount", "underminisrpartitioncount"):
        assert values(f"{REPLICAS}{name}") == {1: 0, 2: 0, 3: 0}, name
    for name in ("fencedbrokercount", "preferredreplicaimbalancecount", "offlinepartitionscount"):
        assert values(f"{CONTROLLER}{name}") == {1: 0, 2: 0, 3: 0}, name
    expands = values(f"{REPLICAS}isrexpands_total")
    assert sum(value or 0 for value in expands.values()) == 3, "once for each partition"
    assert values(UNCLEAN_ELECTIONS) == {1: 0, 2: 0, 3: 0}


async def test_with_one_broker_left_partitions_are_below_the_minimum_and_others_without_a_leader(pages: Pages) -> None:
    metadata = pages.cluster.brokers[1].services.metadata
    await create_topic(metadata, "single", assignments={0: [3]})
    await pages.cluster.stop(2)
    await pages.cluster.stop(3)
    await pages.until_in_sync(1)
    await pages.cluster.until(lambda: metadata.image.topics["single"].partitions[0].leader == -1)

    values = await pages.read()
    assert values(f"{REPLICAS}underminisrpartitioncount") == {1: 3}
    assert values(f"{REPLICAS}atminisrpartitioncount") == {1: 0}
    assert values(f"{CONTROLLER}offlinepartitionscount") == {1: 1}
    assert values("kafka_cluster_partition_underminisr", topic="t", partition="0") == {1: 1}


async def test_series_of_a_partition_are_those_of_its_leader_alone(pages: Pages) -> None:
    where = {"topic": "t", "partition": "0"}
    await pages.cluster.stop(3)
    await pages.until_in_sync(2)

    values = await pages.read()
    assert values("kafka_cluster_partition_replicascount", **where) == {1: 3, 2: 0}
    assert values("kafka_cluster_partition_insyncreplicascount", **where) == {1: 2, 2: 0}
    assert values("kafka_cluster_partition_underreplicated", **where) == {1: 1, 2: 0}
    assert values("kafka_cluster_partition_atminisr", **where) == {1: 1, 2: 0}


async def test_replicated_bytes_and_lag_are_counted_on_both_sides(pages: Pages) -> None:
    assert await pages.cluster.produce(1, b"x" * 1000) is ErrorCode.NONE
    await pages.cluster.until(
        lambda: all(pages.cluster.partition(node).high_watermark == 1 for node in (2, 3))  # type: ignore[union-attr]
    )

    size = float(len(pages.cluster.log_bytes(1)))
    values = await pages.read()
    assert values(f"{TOPICS}replicationbytesin_total") == {1: 0, 2: size, 3: size}
    assert values(f"{TOPICS}replicationbytesout_total") == {1: 2 * size, 2: 0, 3: 0}
    lag = "kafka_server_fetcherlagmetrics_consumerlag"
    where = {"topic": "t", "partition": "0"}
    assert values(lag, clientId="ReplicaFetcherThread-0-1", **where) == {1: None, 2: 0, 3: 0}


async def test_an_unclean_election_is_counted_by_the_controller_alone(pages: Pages) -> None:
    metadata = pages.cluster.brokers[1].services.metadata
    await create_topic(metadata, "u", assignments={0: [3, 2]})
    await pages.cluster.stop(2)
    await pages.cluster.until(lambda: list(metadata.image.topics["u"].partitions[0].isr) == [3])
    await pages.cluster.stop(3)
    await pages.start(2)
    await pages.cluster.until(lambda: metadata.image.topics["u"].partitions[0].leader == -1)

    await pages.elect(2, UNCLEAN, "u", 0)
    await pages.cluster.until(lambda: metadata.image.topics["u"].partitions[0].leader == 2)

    values = await pages.read()
    assert values(UNCLEAN_ELECTIONS) == {1: 1, 2: 0}


async def test_a_controller_that_is_cut_off_from_the_metadata_store_is_none_any_more(pages: Pages) -> None:
    cluster = pages.cluster
    ((kv, *_), _) = await cluster.store.range(cluster.brokers[1].services.metadata.keys.broker_id(1))

    cluster.access[1].cut()
    values = await pages.read()
    assert values(f"{CONTROLLER}activecontrollercount") == {1: 0, 2: 0, 3: 0}, "nobody can elect now"

    await cluster.store.revoke(kv.lease)
    await cluster.until(lambda: cluster.brokers[2].services.metadata.image.controller_id in (2, 3))
    controller = cluster.brokers[2].services.metadata.image.controller_id
    await cluster.until(lambda: 1 not in cluster.brokers[controller].services.metadata.image.brokers)

    values = await pages.read()
    assert values(f"{CONTROLLER}activecontrollercount") == {1: 0, 2: 0, 3: 0} | {controller: 1}
    assert values(f"{CONTROLLER}activebrokercount") == {1: 0, 2: 0, 3: 0} | {controller: 2}
    assert values(f"{CONTROLLER}fencedbrokercount") == {1: 0, 2: 0, 3: 0} | {controller: 1}


def is_moving(cluster: Cluster) -> bool:
    """Whether the leader of the topic `moving`, broker 1, sees a reassignment under way."""
    partition = cluster.partition(1, "moving")
    assert partition is not None
    assert partition.image is not None
    return bool(partition.image.adding_replicas)


async def test_a_partition_that_is_being_moved_is_counted_and_its_new_replica_is_not_missing(pages: Pages) -> None:
    cluster = pages.cluster
    metadata = cluster.brokers[1].services.metadata
    await create_topic(metadata, "moving", assignments={0: [1, 2]})
    await cluster.stop(3)
    await pages.until_in_sync(2)
    before = (await pages.read())(f"{REPLICAS}underreplicatedpartitions")

    moved = ReassignableTopic("moving", [ReassignablePartition(0, [1, 2, 3])])
    async with Wire("127.0.0.1", cluster.brokers[1].port) as wire:
        response = await wire.ask(AlterPartitionReassignmentsRequest(topics=[moved]), 0)
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
    await cluster.until(lambda: is_moving(cluster))

    values = await pages.read()
    assert values(f"{REPLICAS}reassigningpartitions") == {1: 1, 2: 0}
    assert values(f"{REPLICAS}underreplicatedpartitions") == before

    await pages.start(3)
    await cluster.until(lambda: not is_moving(cluster))
    assert (await pages.read())(f"{REPLICAS}reassigningpartitions") == {1: 0, 2: 0, 3: 0}
