"""The audit log: who did what, and who was refused. Events of the logger `odradek.broker.audit`, one line each.

| event | level | when |
|---|---|---|
| authenticated | debug | a client has shown who it is |
| authentication failed | warning | a client could not; `user` is the name that it claims, if it has named one |
| refused | warning | a right is missing; `rule` is what decided |
| changed | info | topics, properties, rules, users, quotas or records were altered or deleted, or could not be |
| repeated | warning | an event came again, `count` times within a minute |
| dropped | warning | `count` events of a client were not written in the last ten seconds |

The fields say who (principal, mechanism, listener, address, client id), what (API, operation, resource), and the
outcome; never a payload or a secret. Within a minute the same event of the same client on the same resource is one
line, and another one with the number of repetitions, so that a client in a loop does not fill a disk. A client that
varies what it asks for is limited, too, and so are all together: events beyond `MOST_LINES` are only counted
(`line_limits`). A client is its principal, or its address while that is anonymous.

`audit.log.file` is a file of its own, as JSON, with all levels; without it the events are among the broker's others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from odradek.broker.clock import Clock
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.request.line_fields import client_of, few, fields_of_connection, fields_of_request, shortened
from odradek.broker.request.line_limits import SPAN_SECONDS, LineLimits
from odradek.broker.structured_logging import StructuredLogger

LOGGER: Final = "odradek.broker.audit"
_LOG: Final = StructuredLogger(LOGGER)
_SPAN_SECONDS: Final = 60.0
_MOST_EVENTS: Final = 1000
"""Events that are remembered; beyond, those of the oldest span are forgotten early, and repeated lines are written."""
MOST_LINES: Final = {"authenticated": (100, 1000), "authentication failed": (100, 1000), "refused": (100, 1000)}
"""The most lines of one client and of all in ten seconds, by event. No event takes the lines of another."""
MOST_CHANGES: Final = (1000, 5000)
"""The same for changes: each is work of somebody who may do it."""


class _Repeated(msgspec.Struct):
    event: str
    fields: dict[str, Any]
    client: str
    since: float
    count: int = 0


class Audit:
    """The audit log of a broker. Used on the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[Any, ...], _Repeated] = {}
        self._limits = {
            event: LineLimits(clock, *most, partial(self._dropped, event))
            for event, most in {**MOST_LINES, "changed": MOST_CHANGES}.items()
        }

    def authenticated(self, connection: ConnectionContext, mechanism: str) -> None:
        """Record that the client of a connection has authenticated."""
        if _LOG.enabled_for(logging.DEBUG) and self._limits["authenticated"].allows(client_of(connection)):
            _LOG.debug("authenticated", **fields_of_connection(connection, mechanism))

    def authentication_failed(self, connection: ConnectionContext, mechanism: str, user: str, reason: str) -> None:
        """Record that a client could not authenticate as `user`, "" if it has named none.

        `reason` has no secret, and the client does not get it.
        """
        claimed = {"user": shortened(user)} if user else {}
        fields = {**fields_of_connection(connection, mechanism), **claimed, "reason": shortened(reason)}
        key = (connection.listener_name, connection.peer_address[0], mechanism, shortened(user), shortened(reason))
        self._once("authentication failed", client_of(connection), key, fields)

    def refused(self, context: RequestContext, api: str, operation: str, resource: str, rule: str) -> None:
        """Record that a client lacks a right; `rule` is the rule that decided, or why none did."""
        resource = shortened(resource)
        fields = {
            **fields_of_request(context, api),
            "operation": operation,
            "resource": resource,
            "rule": shortened(rule),
        }
        connection = context.connection
        key = (connection.principal, connection.peer_address[0], api, operation, resource)
        self._once("refused", client_of(connection), key, fields)

    def changed(self, context: RequestContext, api: str, resources: str, errors: Sequence[str]) -> None:
        """Record that a client has changed `resources`; with `errors`, that it failed for some or all of them.

        Both are of bounded length (`line_fields.few`).
        """
        if not self._limits["changed"].allows(client_of(context.connection)):
            return
        fields = {**fields_of_request(context, api), "resources": resources}
        if errors:
            fields["errors"] = few(len(errors), errors)
        _LOG.info("changed", **fields)

    def tick(self) -> None:
        """Write the numbers of repetitions of a minute ago. To be called every few seconds."""
        now = self._clock.monotonic()
        for key in [key for key, seen in self._seen.items() if seen.since <= now - _SPAN_SECONDS]:
            self._end(key)
        for limits in self._limits.values():
            limits.tick()

    def close(self) -> None:
        """Write what is only counted so far. To be called when a broker stops, after the last request."""
        for key in list(self._seen):
            self._end(key)
        for limits in self._limits.values():
            limits.end_span()

    def _once(self, event: str, client: str, key: tuple[Any, ...], fields: dict[str, Any]) -> None:
        if not _LOG.enabled_for(logging.WARNING):
            return
        key = (event, *key)
        seen = self._seen.get(key)
        if seen is not None:
            seen.count += 1
            return
        if not self._limits[event].allows(client):
            return
        if len(self._seen) >= _MOST_EVENTS:
            self._end(next(iter(self._seen)))
        self._seen[key] = _Repeated(event, fields, client, self._clock.monotonic())
        _LOG.warning(event, **fields)

    def _end(self, key: tuple[Any, ...]) -> None:
        seen = self._seen.pop(key)
        if seen.count and self._limits[seen.event].allows(seen.client, seen.count):
            _LOG.warning("repeated", repeated=seen.event, count=seen.count, **seen.fields)

    @staticmethod
    def _dropped(event: str, client: str, count: int) -> None:
        _LOG.warning("dropped", dropped=event, count=count, client=client, seconds=int(SPAN_SECONDS))
