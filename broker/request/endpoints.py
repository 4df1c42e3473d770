"""The addresses of brokers and leaders, for the client of a request.

A broker registers one address for each of its listeners; a client gets those of the listener that it is connected to.
If this broker's `advertised.listeners` is not set, a client gets the address that it connected to as this broker's own.
So clients reconnect the same way: behind a port forward, under another host name or on any interface. Of a listener
with TLS whose host is a name, clients get the name: they compare it with the broker's certificate.

The other workers of this broker's machine, which have its configuration, are at the same host, and at their own ports.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.metadata.image import BrokerImage
from odradek.broker.metadata.values import KnownBroker
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services


class Endpoint(NamedTuple):
    """A broker's address for one client."""

    node_id: int
    host: str
    port: int
    rack: str | None


def broker_endpoints(services: Services, context: RequestContext) -> list[Endpoint]:
    """The live brokers that have a listener of this name, by node id."""
    brokers = services.metadata.image.brokers
    found = (broker_endpoint(services, context, brokers[node_id]) for node_id in sorted(brokers))
    return [endpoint for endpoint in found if endpoint is not None]


def administrator(services: Services) -> int:
    """The node id that clients get as the controller's: this broker, while it is registered.

    Every broker serves administrators, and Kafka names any live broker, too. The controller may have just died without
    this broker's knowledge. librdkafka then waits for it: it requests the metadata only once when a connection breaks.
    """
    image, node_id = services.metadata.image, services.config.node_id
    return node_id if node_id in image.brokers else image.controller_id


def broker_endpoint(services: Services, context: RequestContext, broker: BrokerImage) -> Endpoint | None:
    """The address of one broker, or None if it has no listener of this name."""
    if broker.node_id == services.config.node_id and services.config.advertised_listeners is None:
        return Endpoint(broker.node_id, _own_host(services, context), context.local_address[1], broker.rack)
    return _endpoint(services, context, broker.node_id, broker)


def fenced_endpoints(services: Services, context: RequestContext) -> list[Endpoint]:
    """The last addresses of the brokers that are known but down, and of those that are starting, by node id."""
    image = services.metadata.image
    fenced: dict[int, BrokerImage | KnownBroker] = {**image.known, **image.registered}
    found = (
        _endpoint(services, context, node_id, fenced[node_id])
        for node_id in sorted(fenced.keys() - image.brokers.keys())
    )
    return [endpoint for endpoint in found if endpoint is not None]


def _endpoint(
    services: Services, context: RequestContext, node_id: int, broker: BrokerImage | KnownBroker
) -> Endpoint | None:
    for listener in broker.listeners:
        if listener.name == context.listener_name:
            is_neighbour = broker.host != "" and broker.host == services.metadata.host
            shares_host = is_neighbour and services.config.advertised_listeners is None
            host = _own_host(services, context) if shares_host else listener.host
            return Endpoint(node_id, host, listener.port, broker.rack)
    return None


def _own_host(services: Services, context: RequestContext) -> str:
    """The host of this broker for the client, if `advertised.listeners` is not set."""
    return services.config.certified_name(context.listener_name) or context.local_address[0]


class Leader(NamedTuple):
    """The leader of a partition in this broker's image; node id and epoch are -1, the address None, without one."""

    node_id: int
    leader_epoch: int
    endpoint: Endpoint | None


def current_leader(services: Services, context: RequestContext, topic: str, topic_id: bytes, index: int) -> Leader:
    """The leader of a partition of a topic, by name or (if that is empty) by id (KIP-951)."""
    image = services.metadata.image
    found = image.topics.get(topic) if topic else image.topics_by_id.get(topic_id)
    partition = None if found is None else found.partition(index)
    if partition is None:
        return Leader(-1, -1, None)
    broker = image.brokers.get(partition.leader)
    endpoint = None if broker is None else broker_endpoint(services, context, broker)
    return Leader(partition.leader, partition.leader_epoch, endpoint)
