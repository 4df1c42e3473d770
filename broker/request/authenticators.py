"""The beginning of each authentication: which listener demands it, and who learns of its outcome."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.clock import Clock
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.audit import Audit
from odradek.broker.request.authentication import Authentication, ListenerAuthentication
from odradek.broker.request.context import ConnectionContext
from odradek.broker.security.principal import Principal


class Authenticators:
    """The listeners, by name, whose clients must authenticate."""

    def __init__(
        self, listeners: Mapping[str, ListenerAuthentication], clock: Clock, metrics: Metrics, audit: Audit
    ) -> None:
        self._listeners = listeners
        self._clock = clock
        self._metrics = metrics
        self._audit = audit

    def begin(self, connection: ConnectionContext) -> None:
        """Make a new connection unauthenticated, if its listener demands that."""
        listener = self._listeners.get(connection.listener_name)
        if listener is None:
            return

        def on_success(principal: Principal, mechanism: str) -> None:
            connection.principal = principal
            self._audit.authenticated(connection, mechanism)

        def on_failure(mechanism: str, reason: str) -> None:
            self._audit.authentication_failed(connection, mechanism, reason)

        counts = self._metrics.listener(connection.listener_name)
        connection.authentication = Authentication(listener, self._clock, counts, on_success, on_failure)
        connection.is_authenticated = False
