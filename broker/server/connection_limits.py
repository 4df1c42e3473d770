"""The limits of connections: how many there may be, and how fast they may be made.

| limit | a connection over it |
|---|---|
| `max.connections`, or the limit of descriptors | waits: nothing is accepted until another one closes |
| `max.connections` of its listener | waits; the other listeners go on |
| `max.connection.creation.rate` of the broker or its listener | waits |
| `max.connections.per.ip`, with `max.connections.per.ip.overrides` | is closed at once |
| the quota `connection_creation_rate` of its address | is closed after its throttle time |

The listener that brokers use among themselves is protected, as in Kafka, if there is another one: the limits of the
broker do not hold it up. If there are too many connections, the one of another listener that has been idle for longest
is closed in place of it.

Differs from Kafka: addresses of the loopback interface have no limit while `max.connections.per.ip` has its default,
which is finite here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoints import is_loopback
from odradek.broker.config.rules import connection_overrides
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.quotas.connection_rates import AddressRates, CreationRate
from odradek.broker.quotas.samples import Windows
from odradek.broker.request.context import ConnectionContext

NO_LIMIT: Final = 0x7FFF_FFFF  # Java's Integer.MAX_VALUE
_BROKER: Final = ""  # the key of the broker's own rate


class ListenerLimits(NamedTuple):
    """The limits of one listener: open connections, and new ones a second."""

    max_connections: int = NO_LIMIT
    max_creation_rate: int = NO_LIMIT


class ConnectionLimits:
    """The limits of one broker, and the numbers that they are compared with. `most` is the limit of descriptors.

    `of_listeners` has the limits that are set for single listeners, by name, `address_rates` the quotas of addresses.
    """

    def __init__(self, config: CurrentConfig, most: int) -> None:
        self.most = most
        self.of_listeners: Mapping[str, ListenerLimits] = {}
        self._config = config
        at_start = config.broker
        self.protected = at_start.inter_broker_listener if len(at_start.listeners) > 1 else None
        self.windows = Windows(at_start.quota_window_num, at_start.quota_window_size_seconds)
        self.address_rates = AddressRates(self.windows)
        self._default_per_ip: int | None = BrokerConfig.properties()["max.connections.per.ip"].default
        self._overrides: dict[str, int] = {}
        self._rates: dict[str, CreationRate] = {}
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._total = 0
        self.config_changed()

    def config_changed(self) -> None:
        """Read the properties again: they may be set at run time."""
        # Differs from Kafka: host names are not resolved, only addresses count, because resolving would block the loop.
        overrides = connection_overrides(self._config.broker.max_connections_per_ip_overrides)
        self._overrides = {host.strip("[]"): limit for host, limit in overrides.items()}
        self.of_listeners = {
            endpoint.name: _limits_of(self._config.broker, endpoint.name) for endpoint in self._config.broker.listeners
        }

    @property
    def total_limit(self) -> int:
        """The most connections of all listeners together."""
        return min(self._config.broker.max_connections, self.most)

    def opened(self, context: ConnectionContext) -> None:
        """Count a connection."""
        self._total += 1
        self._by_host[context.peer_address[0]] += 1
        self._by_listener[context.listener_name] += 1

    def closed(self, context: ConnectionContext) -> None:
        """Count a connection no more."""
        self._total -= 1
        host = context.peer_address[0]
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        self._by_listener[context.listener_name] -= 1

    def reached(self, listener_name: str) -> str | None:
        """Return the name of the limit for which a listener must not accept now; None if it may."""
        of_listener = self.of_listeners.get(listener_name)
        in_listener = self._by_listener[listener_name]
        if of_listener is not None and in_listener >= of_listener.max_connections:
            return f"listener.name.{listener_name.lower()}.max.connections"
        if self._total < self.total_limit or (listener_name == self.protected and self._total > in_listener):
            return None
        return "max.connections" if self._config.broker.max_connections <= self.most else "limit of descriptors"

    def allows(self, host: str) -> bool:
        """Return whether one more connection from an address is within its limit."""
        limit = self._overrides.get(host)
        if limit is None:
            limit = self._config.broker.max_connections_per_ip
            if limit == self._default_per_ip and is_loopback(host):
                return True
        return self._by_host[host] < limit

    def record_creation(self, listener_name: str, now: float) -> int:
        """Count a new connection in the rates; return the milliseconds for which the listener must not accept."""
        pause_ms = 0
        of_listener = self.of_listeners.get(listener_name)
        if of_listener is not None and of_listener.max_creation_rate < NO_LIMIT:
            pause_ms = self._record(listener_name, of_listener.max_creation_rate, now)
        of_broker = self._config.broker.max_connection_creation_rate
        if of_broker < NO_LIMIT and listener_name != self.protected:
            pause_ms = max(pause_ms, self._record(_BROKER, of_broker, now))
        return pause_ms

    def _record(self, name: str, limit: int, now: float) -> int:
        limit = max(limit, 1)  # with 0 nothing could ever be accepted, and the property not be changed
        rate = self._rates.get(name)
        if rate is None:
            rate = self._rates[name] = CreationRate(self.windows, limit, now)
        return rate.record(limit, now)


def _limits_of(config: BrokerConfig, listener: str) -> ListenerLimits:
    most, rate = (
        config.listener_value(listener, f"max.{what}") for what in ("connections", "connection.creation.rate")
    )
    return ListenerLimits(NO_LIMIT if most is None else most, NO_LIMIT if rate is None else rate)
