"""A Fetch of a consumer with a quota: while it is over the quota, it gets an empty response at once (KIP-219).

The quota is checked when the records are there, before they become part of the session: the consumer asks for the same
records again. Reading is limited to what the quota allows in its windows, since more is always over the quota.

Differs from Kafka: a single batch that is larger than that is sent when nothing else is over the quota, and the
consumer then waits for as long as the quota takes for it. Kafka throttles such a consumer for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.replication.fetch.fetch_session import Fetch, Row
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.throttling import Throttling
from odradek.protocol.messages.fetch import FetchResponse


class ThrottledFetch(Fetch):
    """The fetch of a client with quotas. Its response has a throttle time if the rows are not sent."""

    def __init__(self, fetch: Fetch, throttling: Throttling, context: RequestContext) -> None:
        super().__init__(fetch.partitions, throttling.fetch_window_bytes(context))
        self._fetch = fetch
        self._throttling = throttling
        self._context = context

    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        size = sum(len(data.records) for _, data in rows if data.records is not None)
        throttle_ms = self._throttling.throttle_fetch(self._context, size)
        return self._fetch.respond_throttled(throttle_ms) if throttle_ms else self._fetch.respond(rows)

    def respond_throttled(self, throttle_time_ms: int) -> FetchResponse:
        return self._fetch.respond_throttled(throttle_time_ms)


def with_quotas(fetch: Fetch, services: Services, context: RequestContext, replica_id: int) -> Fetch:
    """Return the fetch as the quotas of its client allow it. Followers have none."""
    if not services.throttling.is_active or replica_id >= 0:
        return fetch
    return ThrottledFetch(fetch, services.throttling, context)
