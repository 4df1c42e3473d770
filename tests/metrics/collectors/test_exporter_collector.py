from __future__ import annotations

from odradek.broker.metrics.collectors.gauge_values import ClusterGauges
from tests.metrics.collectors.scraping import Scraped, of, partition


async def test_only_partitions_led_here_are_reported(scraped: Scraped) -> None:
    scraped.partitions = [partition(0), partition(1, preferred_leader=2), partition(2, leader=2, is_led_here=False)]
    samples = await scraped.samples()
    prefix, where = "kafka_topic_partition_", {"topic": "t", "partition": "0"}
    assert {name: samples[of(prefix + name, **where)] for name in ("current_offset", "oldest_offset", "leader")} == {
        "current_offset": 8,
        "oldest_offset": 5,
        "leader": 1,
    }
    assert samples[of(prefix + "replicas", **where)] == 3
    assert samples[of(prefix + "in_sync_replica", **where)] == 2
    assert samples[of(prefix + "under_replicated_partition", **where)] == 1
    assert samples[of(prefix + "leader_is_preferred", **where)] == 1
    assert samples[of(prefix + "leader_is_preferred", topic="t", partition="1")] == 0
    assert of(prefix + "leader", topic="t", partition="2") not in samples
    scraped.partition_limit = 2
    assert of(prefix + "leader", **where) not in await scraped.samples()


async def test_only_the_controller_reports_brokers_and_topics(scraped: Scraped) -> None:
    assert of("kafka_brokers") not in await scraped.samples()
    scraped.cluster = ClusterGauges({1: "one:9092", 2: "two:9092"}, {"t": 12})
    samples = await scraped.samples()
    assert samples[of("kafka_brokers")] == 2
    assert samples[of("kafka_broker_info", id="2", address="two:9092")] == 1
    assert samples[of("kafka_topic_partitions", topic="t")] == 12
