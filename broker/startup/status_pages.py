"""The pages of a broker's HTTP port, from the start of the broker on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metrics.collectors.broker_gauges import BrokerGauges
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)


async def start_status_pages(
    config: BrokerConfig,
    metrics: Metrics,
    gauges: BrokerGauges,
    clock: Clock,
    stack: AsyncExitStack,
    why_not_ready: Callable[[], str | None],
    remark: Callable[[], str | None],
    *,
    port: int,
) -> int:
    """Serve the pages on `port`, 0 for any free one, until `stack` ends them, and return the port.

    `why_not_ready` returns why the broker serves no clients, None if it does; `remark`, what needs an operator although
    it does. Raises OSError.
    """
    # Not at the top: importing the Prometheus client takes a third of the time of a start.
    from odradek.broker.metrics.collectors.dialects import broker_registry
    from odradek.broker.server.status import start_status_server, status_server

    registry = broker_registry(config, metrics, gauges, clock)
    server = status_server(registry, config.metrics_static_labels, why_not_ready, remark)
    stack.push_async_callback(server.stop)
    host, port = await start_status_server(server, config.metrics_host, port)
    _LOG.info("metrics served", address=(host, port))
    return port
