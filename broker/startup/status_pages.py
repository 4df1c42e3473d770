"""The pages of a broker's HTTP port, from the start of the broker on."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.metrics.collectors.broker_gauges import BrokerGauges
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.server.probes import Probes
from odradek.broker.structured_logging import StructuredLogger

if TYPE_CHECKING:
    from odradek.broker.security.tls.listener_tls import ListenerTls
    from odradek.broker.server.http_guard import HttpGuard

_LOG = StructuredLogger(__name__)


async def start_status_pages(
    config: BrokerConfig,
    metrics: Metrics,
    gauges: BrokerGauges,
    clock: Clock,
    stack: AsyncExitStack,
    probes: Probes,
    tls: ListenerTls | None,
    *,
    port: int,
) -> int:
    """Serve the pages on `port`, 0 for any free one, until `stack` ends them, and return the port; -1 for none.

    Raises OSError, and ConfigError if the token cannot be read.
    """
    if config.metrics_port < 0:
        return -1
    # Not at the top: importing the Prometheus client takes a third of the time of a start.
    from odradek.broker.metrics.collectors.dialects import broker_registry
    from odradek.broker.server.status import start_status_server, status_server

    registry = broker_registry(config, metrics, gauges, clock)
    context = None if tls is None else lambda: tls.context
    server = status_server(registry, config.metrics_static_labels, probes, _guard(config, clock), context)
    stack.push_async_callback(server.stop)
    host, port = await start_status_server(server, config.metrics_host, port)
    _LOG.info("metrics served", address=(host, port))
    return port


def _guard(config: BrokerConfig, clock: Clock) -> HttpGuard | None:
    """Return what protects the metrics; None if everybody may read them."""
    from odradek.broker.server.http_guard import HttpGuard, read_token

    trusts_certificates = config.metrics_ssl_truststore_location is not None
    if config.metrics_token_file is None:
        return HttpGuard(None, clock, trusts_certificates=True) if trusts_certificates else None
    path = Path(config.metrics_token_file)
    try:
        read_token(path)
    except ValueError as error:
        raise ConfigError([str(error)]) from error
    return HttpGuard(path, clock, trusts_certificates=trusts_certificates)
