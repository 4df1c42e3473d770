from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from odradek.broker.metrics.collectors.gauge_values import FetcherGauges, Gauges
from odradek.protocol.errors import ErrorCode
from tests.metrics.collectors.scraping import Scraped, of, partition


async def test_topic_counters_have_a_series_for_each_topic_and_one_for_all(scraped: Scraped) -> None:
    scraped.metrics.topic("a").messages_in += 3
    scraped.metrics.topic("b").messages_in += 4
    samples = await scraped.samples()
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    assert samples[of(name, topic="a")] == 3
    assert samples[of(name, topic="b")] == 4
    assert samples[of(name)] == 7


async def test_the_series_of_a_deleted_topic_end_and_no_sum_falls(scraped: Scraped) -> None:
    scraped.metrics.topic("a").bytes_in += 10
    scraped.metrics.topic("b").bytes_in += 5
    scraped.metrics.remove_topic("a")
    scraped.metrics.remove_topic("never-heard-of")
    samples = await scraped.samples()
    name = "kafka_server_brokertopicmetrics_bytesin_total"
    assert of(name, topic="a") not in samples
    assert samples[of(name)] == 15
    scraped.metrics.topic("a").bytes_in += 1
    assert (await scraped.samples())[of(name, topic="a")] == 1


async def test_requests_and_errors_are_counted_by_api(scraped: Scraped) -> None:
    api = scraped.metrics.api("Produce")
    api.versions[9] += 2
    api.versions[13] += 1
    api.errors[ErrorCode.NOT_LEADER_OR_FOLLOWER] += 5
    samples = await scraped.samples()
    assert samples[of("kafka_network_requestmetrics_requests_total", request="Produce", version="9")] == 2
    assert samples[of("kafka_network_requestmetrics_requests_total", request="Produce", version="13")] == 1
    name = "kafka_network_requestmetrics_errors_total"
    assert samples[of(name, request="Produce", error="NOT_LEADER_OR_FOLLOWER")] == 5


async def test_times_are_in_milliseconds_with_kafkas_percentiles(scraped: Scraped) -> None:
    api = scraped.metrics.api("FetchConsumer")
    for _ in range(99):
        api.record(7.0, 7.0, 7.01, 7.01, 7.01)
    api.record(7.0, 7.0, 7.01, 7.5, 7.5)
    samples = await scraped.samples()
    name = "kafka_network_requestmetrics_totaltimems"
    for quantile in ("0.50", "0.75", "0.95", "0.98", "0.99"):
        assert samples[of(name, request="FetchConsumer", quantile=quantile)] == pytest.approx(10, rel=0.05)
    assert samples[of(name, request="FetchConsumer", quantile="0.999")] == pytest.approx(500, rel=0.05)
    assert samples[of(name + "_count", request="FetchConsumer")] == 100
    remote = "kafka_network_requestmetrics_remotetimems"
    assert samples[of(remote, request="FetchConsumer", quantile="0.50")] == 0
    assert samples[of(remote, request="FetchConsumer", quantile="0.999")] == pytest.approx(490, rel=0.05)
    assert samples[of(remote + "_count", request="FetchConsumer")] == 100


async def test_flushes_are_counted_with_their_times(scraped: Scraped) -> None:
    name = "kafka_log_logflushstats_logflushrateandtimems"
    scraped.metrics.log_flush.record(0.02)
    scraped.metrics.tick(scraped.clock.monotonic(), 5.0)
    scraped.metrics.log_flush.record(0.02)
    samples = await scraped.samples()
    assert samples[of(name + "_count")] == 2
    assert samples[of(name + "_sum")] == pytest.approx(40)
    assert samples[of(name, quantile="0.50")] == pytest.approx(20, rel=0.05)


async def test_the_metadata_store_s_requests_are_counted_with_their_times(scraped: Scraped) -> None:
    counts = scraped.metrics.metadata_store
    counts.attempts, counts.unanswered, counts.unconnected, counts.renewals_failed = 7, 2, 3, 1
    counts.answered.record_all([0.02] * 5)
    scraped.gauges = Gauges(metadata_frozen=True)
    samples = await scraped.samples()
    prefix = "odradek_metadata_store_"
    assert samples[of(f"{prefix}attempts_total")] == 7
    assert samples[of(f"{prefix}unanswered_total")] == 2
    assert samples[of(f"{prefix}unconnected_total")] == 3
    assert samples[of(f"{prefix}failed_renewals_total")] == 1
    assert samples[of(f"{prefix}freezes_total")] == 0
    assert samples[of(f"{prefix}timems_count")] == 5
    assert samples[of(f"{prefix}timems", quantile="0.99")] == pytest.approx(20, rel=0.05)
    assert samples[of("odradek_metadata_frozen")] == 1


async def test_the_size_of_the_metadata_store_is_a_series_if_it_is_known(scraped: Scraped) -> None:
    size, quota = of("odradek_metadata_store_size_bytes"), of("odradek_metadata_store_quota_bytes")
    assert not {size, quota} & (await scraped.samples()).keys()
    scraped.metrics.metadata_store.size_bytes = 20_480
    samples = await scraped.samples()
    assert (samples[size], quota in samples) == (20_480, False)
    scraped.metrics.metadata_store.quota_bytes = 2 << 30
    assert (await scraped.samples())[quota] == 2 << 30


async def test_fetches_are_counted_by_kind_of_fetcher_and_together(scraped: Scraped) -> None:
    for name, count, seconds in (("FetchConsumer", 3, 0.1), ("FetchFollower", 1, 0.9)):
        api = scraped.metrics.api(name)
        for _ in range(count):
            api.versions[12] += 1
            api.record(7.0, 7.0, 7.0, 7.0, 7.0 + seconds)
    samples = await scraped.samples()
    requests = "kafka_network_requestmetrics_requests_total"
    assert samples[of(requests, request="FetchConsumer", version="12")] == 3
    assert samples[of(requests, request="FetchFollower", version="12")] == 1
    assert samples[of(requests, request="Fetch", version="12")] == 4
    times = "kafka_network_requestmetrics_totaltimems"
    assert samples[of(times + "_count", request="Fetch")] == 4
    assert samples[of(times, request="Fetch", quantile="0.75")] == pytest.approx(100, rel=0.05)
    assert samples[of(times, request="Fetch", quantile="0.95")] == pytest.approx(900, rel=0.05)


async def test_partitions_have_series_up_to_the_limit(scraped: Scraped) -> None:
    scraped.partitions = [partition(number) for number in range(3)]
    scraped.gauges = Gauges(partition_count=3, leader_count=2)
    samples = await scraped.samples()
    where = {"topic": "t", "partition": "1"}
    assert samples[of("kafka_log_log_size", **where)] == 100
    assert samples[of("kafka_log_log_logstartoffset", **where)] == 5
    assert samples[of("kafka_log_log_logendoffset", **where)] == 9
    assert samples[of("kafka_log_log_numlogsegments", **where)] == 2
    assert samples[of("kafka_cluster_partition_underreplicated", **where)] == 1
    assert samples[of("kafka_cluster_partition_underminisr", **where)] == 0
    assert samples[of("kafka_cluster_partition_atminisr", **where)] == 1
    scraped.partition_limit = 2
    samples = await scraped.samples()
    assert not [name for name, _ in samples if name.startswith("kafka_log_log_")]
    assert samples[of("kafka_server_replicamanager_partitioncount")] == 3
    assert samples[of("kafka_server_replicamanager_leadercount")] == 2


async def test_the_time_in_the_response_queue_is_always_0(scraped: Scraped) -> None:
    scraped.metrics.api("Produce").record(7.0, 7.0, 7.0, 7.0, 8.0)
    samples = await scraped.samples()
    name = "kafka_network_requestmetrics_responsequeuetimems"
    assert samples[of(name, request="Produce", quantile="0.99")] == 0
    assert samples[of(name + "_count", request="Produce")] == 1


async def test_connections_are_counted_by_listener_with_rates(scraped: Scraped) -> None:
    listener = scraped.metrics.listener("PLAINTEXT")
    listener.sample(scraped.clock.monotonic())
    listener.created, listener.closed, listener.idle = 60, 15, 2
    listener.authentications, listener.failed_authentications, listener.expired_sessions = 40, 5, 3
    listener.software_opened("librdkafka", "2.0.2")
    scraped.clock.advance(30_000)
    samples = await scraped.samples()
    where = {"listener": "PLAINTEXT", "networkProcessor": "0"}
    prefix = "kafka_server_socket_server_metrics_"
    assert samples[of(prefix + "connection_count", **where)] == 45
    assert samples[of(prefix + "connection_creation_rate", **where)] == pytest.approx(2)
    assert samples[of(prefix + "connection_close_rate", **where)] == pytest.approx(0.5)
    assert samples[of(prefix + "expired_connections_killed_count", **where)] == 3
    assert samples[of(prefix + "successful_authentication_total", **where)] == 40
    assert samples[of(prefix + "failed_authentication_total", **where)] == 5
    assert samples[of("odradek_connections_idle_total", **where)] == 2
    software = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.0.2", **where}
    assert samples[of(prefix + "connections", **software)] == 1
    listener.software_closed("librdkafka", "2.0.2")
    assert of(prefix + "connections", **software) not in await scraped.samples()


async def test_rates_are_about_the_last_half_minute(scraped: Scraped) -> None:
    listener = scraped.metrics.listener("PLAINTEXT")
    listener.created = 1000
    for _ in range(10):
        scraped.clock.advance(5_000)
        scraped.metrics.tick(scraped.clock.monotonic(), 5.0)
    assert listener.rates(scraped.clock.monotonic()) == (0.0, 0.0)


async def test_idleness_follows_the_load_over_a_minute(scraped: Scraped) -> None:
    for _ in range(60):
        scraped.metrics.observe_loop(busy=4.0, elapsed=5.0)
    samples = await scraped.samples()
    for name in (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
    ):
        assert samples[of(name)] == pytest.approx(0.2, abs=0.01)


async def test_gauges_have_kafkas_names(scraped: Scraped) -> None:
    scraped.gauges = Gauges(
        broker_state=3, is_active_controller=True, under_replicated_partitions=2, purgatory_sizes={"Fetch": 7}
    )
    samples = await scraped.samples()
    assert samples[of("kafka_server_kafkaserver_brokerstate")] == 3
    assert samples[of("kafka_controller_kafkacontroller_activecontrollercount")] == 1
    assert samples[of("kafka_server_replicamanager_underreplicatedpartitions")] == 2
    assert samples[of("kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch")] == 7


async def test_static_labels_are_added_to_every_sample_and_never_replace_one(scraped: Scraped) -> None:
    scraped.metrics.topic("a").bytes_in += 1
    samples = await scraped.samples(topic="static", env="dev")
    assert {dict(labels)["env"] for _, labels in samples} == {"dev"}
    assert samples[of("kafka_server_brokertopicmetrics_bytesin_total", topic="a", env="dev")] == 1
    assert of("process_open_fds", topic="static", env="dev") in samples


async def test_openmetrics_is_returned_to_a_client_that_accepts_it(scraped: Scraped) -> None:
    scraped.metrics.topic("a").bytes_in += 1
    scraped.metrics.api("Produce").versions[9] += 1
    text, content_type = await scraped.text("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    names = [family.name for family in parse_openmetrics(text)]
    assert "kafka_server_brokertopicmetrics_bytesin" in names
    assert len(names) == len(set(names))


async def test_the_text_format_is_the_default(scraped: Scraped) -> None:
    text, content_type = await scraped.text("*/*")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


async def test_two_brokers_in_one_interpreter_share_nothing(scraped: Scraped) -> None:
    other = Scraped()
    scraped.metrics.topic("a").messages_in += 1
    assert of("kafka_server_brokertopicmetrics_messagesin_total", topic="a") not in await other.samples()


async def test_series_of_a_partition_s_replicas_are_0_where_it_is_not_led(scraped: Scraped) -> None:
    scraped.partitions = [partition(0, is_led_here=False)]
    samples = await scraped.samples()
    for name in ("replicascount", "insyncreplicascount", "underreplicated", "underminisr", "atminisr"):
        assert samples[of(f"kafka_cluster_partition_{name}", topic="t", partition="0")] == 0, name
    assert samples[of("kafka_log_log_size", topic="t", partition="0")] == 100


async def test_the_lag_of_a_replica_is_labelled_with_the_loop_that_fetches_it(scraped: Scraped) -> None:
    follows = partition(1, is_led_here=False, fetcher="ReplicaFetcherThread-0-2", lag=7)
    scraped.partitions = [partition(0), follows]
    scraped.gauges = Gauges(fetchers=FetcherGauges(max_lag=7, min_fetch_rate=1.5, failed_partitions=2, dead_threads=3))
    samples = await scraped.samples()
    lag = "kafka_server_fetcherlagmetrics_consumerlag"
    assert {labels: value for (name, labels), value in samples.items() if name == lag} == {
        of(lag, clientId="ReplicaFetcherThread-0-2", topic="t", partition="1")[1]: 7
    }
    prefix = "kafka_server_replicafetchermanager_"
    assert samples[of(f"{prefix}maxlag", clientId="Replica")] == 7
    assert samples[of(f"{prefix}minfetchrate", clientId="Replica")] == 1.5
    assert samples[of(f"{prefix}failedpartitionscount", clientId="Replica")] == 2
    assert samples[of(f"{prefix}deadthreadcount", clientId="Replica")] == 3


async def test_the_rate_of_a_fetcher_is_that_of_the_last_half_minute(scraped: Scraped) -> None:
    fetcher = scraped.metrics.fetcher(2, 0)
    assert fetcher.rate(scraped.clock.monotonic()) == 0
    for requests in (1000, 0, 0, 0, 0, 0, 30, 30):
        fetcher.requests += requests
        scraped.metrics.tick(scraped.clock.monotonic(), 5.0)
        scraped.clock.advance(5_000)
    assert fetcher.rate(scraped.clock.monotonic()) == pytest.approx(60 / 35)
    scraped.metrics.remove_fetcher(2, 0)
    assert scraped.metrics.fetcher(2, 0).requests == 0
