"""The pages of a broker's HTTP port.

| path | answer |
|---|---|
| `/metrics` | the metrics, for Prometheus |
| `/healthz` | 200 while the event loop runs, and no other worker is gone; restart the process if this fails |
| `/readyz` | 200 when clients can be served, with a remark if an operator must look; else 503 with the reason |

With a guard, only those whom it allows may read `/metrics`; the others stay open to probes, and give no reasons.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from http import HTTPStatus
from ssl import SSLContext

from prometheus_client.registry import Collector

from odradek.broker.request.context import Address
from odradek.broker.server.exposition import exposition
from odradek.broker.server.http import HttpServer, Request, Response
from odradek.broker.server.http_guard import UNAUTHORIZED, HttpGuard
from odradek.broker.server.probes import Probes
from odradek.broker.structured_logging import address_text

_NOT_READY = Response(b"not ready\n", HTTPStatus.SERVICE_UNAVAILABLE)


def status_server(
    collector: Collector,
    static_labels: Iterable[str],
    probes: Probes,
    guard: HttpGuard | None = None,
    tls_context: Callable[[], SSLContext] | None = None,
) -> HttpServer:
    """Create a server of the pages above. `guard` and `tls_context` protect the port.

    `static_labels` have the form of `metrics.static.labels`: `name=value`. Raises ValueError for any other form.
    """
    labels = _labels(static_labels)

    async def metrics(request: Request) -> Response:
        if guard is not None and not await guard.allows(request):
            return UNAUTHORIZED
        body, content_type = await exposition(collector, request.headers.get("accept", ""), labels)
        return Response(body, content_type=content_type)

    async def health(_: Request) -> Response:
        reason = probes.unhealthy()
        if reason is None:
            return Response(b"ok\n")
        text = "unhealthy\n" if guard is not None else f"unhealthy: {reason}\n"
        return Response(text.encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    async def readiness(_: Request) -> Response:
        reason = probes.not_ready()
        if guard is not None:
            return Response(b"ready\n") if reason is None else _NOT_READY
        if reason is None:
            remarked = probes.remark()
            return Response(b"ready\n" if remarked is None else f"ready, but {remarked}\n".encode())
        return Response(f"not ready: {reason}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    return HttpServer({"/metrics": metrics, "/healthz": health, "/readyz": readiness}, tls_context=tls_context)


async def start_status_server(server: HttpServer, host: str, port: int) -> Address:
    """Start a server of the pages above, and return its address. Raises OSError, which names the properties."""
    try:
        return await server.start(host, port)
    except OSError as error:
        # asyncio adds the address to the text of the error, which has it already below.
        reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        where = f"{address_text((host, port))} (metrics.host, metrics.port)"
        hint = "metrics.port=0 takes any free port, -1 none"
        raise OSError(error.errno, f"cannot serve metrics on {where}: {reason}; {hint}") from error


def _labels(texts: Iterable[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{text!r} is not a label of the form name=value")
        labels[name] = value
    return labels
