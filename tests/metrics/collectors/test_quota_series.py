from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metrics.collectors.gauge_values import Gauges, QuotaGauges
from odradek.broker.metrics.collectors.quota_series import SERIES_LIMIT, last_used
from odradek.broker.quotas.client_quotas import Use
from odradek.broker.quotas.samples import Windows
from odradek.broker.quotas.usage import Usage
from tests.handlers.quotas import set_quota
from tests.handlers.requests import batch, create, produce_request
from tests.metrics.collectors.scraping import Scraped, of
from tests.metrics.collectors.test_cluster_gauges import scrape
from tests.wire import Wire


async def test_the_use_of_each_kind_has_both_names(scraped: Scraped) -> None:
    scraped.gauges = Gauges(
        quotas=[
            QuotaGauges("producer_byte_rate", "alice", "app", 100.0, 20.0),
            QuotaGauges("consumer_byte_rate", "alice", "", 200.0, 30.0),
            QuotaGauges("request_percentage", "", "app", 12.5, 40.0),
            QuotaGauges("controller_mutation_rate", "alice", "app", 3.0, 50.0, -7.0),
        ]
    )

    samples = await scraped.samples()

    assert samples[of("kafka_server_produce_byte_rate", user="alice", client_id="app")] == 100
    assert samples[of("kafka_server_produce_throttle_time", user="alice", client_id="app")] == 20
    assert samples[of("kafka_server_fetch_byte_rate", user="alice", client_id="")] == 200
    assert samples[of("kafka_server_fetch_throttle_time", user="alice", client_id="")] == 30
    assert samples[of("kafka_server_request_request_time", user="", client_id="app")] == 12.5
    assert samples[of("kafka_server_request_throttle_time", user="", client_id="app")] == 40
    assert samples[of("kafka_server_controllermutation_mutation_rate", user="alice", client_id="app")] == 3
    assert samples[of("kafka_server_controllermutation_tokens", user="alice", client_id="app")] == -7
    quota = "kafka_server_quota_"
    assert samples[of(quota + "byte_rate", resource="Produce", user="alice", clientId="app")] == 100
    assert samples[of(quota + "byte_rate", resource="Fetch", user="alice", clientId="")] == 200
    assert samples[of(quota + "request_time", resource="Request", user="", clientId="app")] == 12.5
    assert samples[of(quota + "throttle_time", resource="ControllerMutation", user="alice", clientId="app")] == 50
    assert samples[of(quota + "tokens", resource="ControllerMutation", user="alice", clientId="app")] == -7


def test_the_series_of_invented_clients_are_limited() -> None:
    usage = Usage(Windows(), 1.0, 0.0)
    of_many = [Use("producer_byte_rate", "", f"{number}", usage) for number in range(SERIES_LIMIT + 500)]
    other = Use("consumer_byte_rate", "", "app", usage)

    kept = last_used([other, *of_many])

    assert len(kept) == SERIES_LIMIT + 1
    assert other in kept
    assert of_many[-1] in kept
    assert of_many[0] not in kept


async def test_a_broker_reports_what_its_clients_use() -> None:
    async with Broker({"metrics.port": "0"}) as broker, Wire("127.0.0.1", broker.port, "app") as app:
        await create(app, "t")
        await set_quota(app, [("user", "ANONYMOUS"), ("client-id", "app")], ("producer_byte_rate", 1_000_000.0))
        await app.ask(produce_request("t", batch(b"x" * 50_000)), 9)
        samples = await scrape(broker)

    rate = samples[of("kafka_server_produce_byte_rate", user="ANONYMOUS", client_id="app")]
    assert rate == pytest.approx(5_000, rel=0.1)
