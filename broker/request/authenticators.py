"""Begins the authentication of new connections, where the listener demands it; the audit log gets the outcome."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.clock import Clock
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.audit import Audit
from odradek.broker.request.authentication import Authentication, ListenerAuthentication
from odradek.broker.request.context import ConnectionContext
from odradek.broker.security.principal import ANONYMOUS, Principal

CERTIFICATE = "TLS"
"""The name of authentication by certificate in the audit log, where others have their mechanism."""


class Authenticators:
    """The listeners, by name, whose clients must authenticate."""

    def __init__(
        self, listeners: Mapping[str, ListenerAuthentication], clock: Clock, metrics: Metrics, audit: Audit
    ) -> None:
        self._listeners = listeners
        self._clock = clock
        self._metrics = metrics
        self._audit = audit

    def handshake_failed(self, connection: ConnectionContext, reason: str) -> None:
        """Record that a client could not agree on TLS, or had no valid certificate."""
        self._metrics.listener(connection.listener_name).failed_authentications += 1
        self._audit.authentication_failed(connection, CERTIFICATE, "", reason)

    def begin(self, connection: ConnectionContext) -> None:
        """Make a new connection unauthenticated, if its listener demands that; record what a certificate has shown."""
        counts = self._metrics.listener(connection.listener_name)
        listener = self._listeners.get(connection.listener_name)
        if listener is None:
            if connection.principal is not ANONYMOUS:
                counts.authentications += 1
                self._audit.authenticated(connection, CERTIFICATE)
            return

        def on_success(principal: Principal, mechanism: str) -> None:
            connection.principal = principal
            self._audit.authenticated(connection, mechanism)

        def on_failure(mechanism: str, user: str, reason: str) -> None:
            self._audit.authentication_failed(connection, mechanism, user, reason)

        connection.authentication = Authentication(listener, self._clock, counts, on_success, on_failure)
        connection.is_authenticated = False
