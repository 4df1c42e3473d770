"""The log line of a request, and the fields by which any line about a request names it."""

from __future__ import annotations

from typing import Any, Final

from odradek.broker.metrics.counts.metrics import ApiMetrics
from odradek.broker.request.context import RequestContext
from odradek.broker.structured_logging import StructuredLogger

REQUEST_LOG: Final = StructuredLogger("odradek.broker.request")


def request_fields(metrics: ApiMetrics, context: RequestContext) -> dict[str, Any]:
    """Return the fields that name a request."""
    return {
        "api": metrics.name,
        "version": context.api_version,
        "client_id": context.client_id,
        "peer": context.peer_address,
        "listener": context.listener_name,
        "correlation_id": context.correlation_id,
    }


def log_request(metrics: ApiMetrics, context: RequestContext, now: float) -> None:
    """Log that a request was answered at `now` (monotonic). Callers ask first whether REQUEST_LOG is enabled."""
    milliseconds = round((now - context.received_at) * 1000, 3)
    REQUEST_LOG.debug("request answered", **request_fields(metrics, context), ms=milliseconds)
