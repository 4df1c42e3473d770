from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from odradek.broker.metrics.collectors.dialects import registry
from odradek.broker.metrics.collectors.gauge_values import Gauges
from odradek.broker.metrics.collectors.jmx_collector import JmxCollector
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.server.http import HttpServer
from odradek.broker.server.probes import Probes
from odradek.broker.server.status import status_server
from odradek.broker.testing.clock import ManualClock


class Status(NamedTuple):
    server: HttpServer
    address: tuple[str, int]
    reasons: list[str]

    async def get(self, path: str) -> tuple[int, str]:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        return int(head.split()[1]), body


@pytest.fixture
async def status() -> AsyncIterator[Status]:
    collector = JmxCollector(Metrics(), ManualClock(), Gauges, list, 1000)
    reasons: list[str] = []
    server = status_server(registry(collector), ["env=dev"], Probes(lambda: reasons[0] if reasons else None))
    yield Status(server, await server.start("127.0.0.1", 0), reasons)
    await server.stop()


async def test_metrics_are_scraped(status: Status) -> None:
    code, body = await status.get("/metrics")
    assert code == 200
    assert 'kafka_server_kafkaserver_brokerstate{env="dev"} 0.0\n' in body


async def test_a_broker_is_ready_without_a_reason_against_it(status: Status) -> None:
    status.reasons.append("recovering logs, 3 of 10")
    assert await status.get("/readyz") == (503, "not ready: recovering logs, 3 of 10\n")
    assert await status.get("/healthz") == (200, "ok\n")
    status.reasons.clear()
    assert await status.get("/readyz") == (200, "ready\n")


@pytest.mark.parametrize("text", ["env", "=dev", "a-b=c"])
def test_a_static_label_has_a_name_and_a_value(text: str) -> None:
    collector = JmxCollector(Metrics(), ManualClock(), Gauges, list, 1000)
    with pytest.raises(ValueError, match="name=value"):
        status_server(registry(collector), [text], Probes(lambda: None))
