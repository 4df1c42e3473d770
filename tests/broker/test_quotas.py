"""Client quotas in a cluster: set at one broker, enforced by each for itself."""

from __future__ import annotations

from pathlib import Path

from tests.broker.replicating import three_brokers
from tests.handlers.quotas import set_quota
from tests.handlers.requests import batch, produce_request
from tests.wire import Wire


async def test_a_quota_holds_at_every_broker_and_each_measures_what_it_serves(tmp_path: Path) -> None:
    async with three_brokers(tmp_path) as cluster:
        await cluster.create(partitions=3)
        brokers = [cluster.brokers[node_id] for node_id in sorted(cluster.brokers)]
        async with Wire("127.0.0.1", brokers[0].port) as admin:
            await set_quota(admin, [("client-id", "app")], ("producer_byte_rate", 10_000.0))
        await cluster.until(lambda: all(broker.services.throttling.is_active for broker in brokers))

        for broker in brokers:
            led = broker.services.metadata.image.topics["t"].partitions
            [index] = [index for index, partition in enumerate(led) if partition.leader == broker.config.node_id]
            async with Wire("127.0.0.1", broker.port, "app") as app:
                request = produce_request("t", batch(b"x" * 90_000), partition=index, acks=-1)
                assert (await app.ask(request, 9)).throttle_time_ms == 0
                assert (await app.ask(request, 9)).throttle_time_ms > 7000


async def test_the_fetches_of_followers_are_not_limited(tmp_path: Path) -> None:
    async with three_brokers(tmp_path) as cluster:
        await cluster.create()
        leader = cluster.brokers[cluster.leader()]
        async with Wire("127.0.0.1", leader.port) as wire:
            everybody: list[tuple[str, str | None]] = [("user", None)]
            limits = ("consumer_byte_rate", 1.0), ("request_percentage", 0.001)
            await set_quota(wire, everybody, *limits)
        for broker in cluster.brokers.values():
            await cluster.until(lambda broker=broker: broker.services.throttling.is_active)  # type: ignore[misc]

        async with Wire("127.0.0.1", leader.port) as wire:
            response = await wire.ask(produce_request("t", batch(b"x" * 50_000), acks=-1), 9)

        assert response.responses[0].partition_responses[0].error_code == 0
        assert cluster.in_sync(*cluster.brokers)
