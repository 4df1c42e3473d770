"""What the client of a request may do. Without an authorizer, which `authorizer.class.name` sets, everything."""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.security.access.resources import CLUSTER_NAME, Operation, ResourceType


def allows(
    services: Services, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
) -> bool:
    """Return whether the client may perform `operation` on the resource `name`."""
    authorizer = services.authorizer
    if authorizer is None:
        return True
    connection = context.connection
    return authorizer.allows(connection.principal, connection.peer_address[0], operation, resource_type, name)


def allows_on_cluster(services: Services, context: RequestContext, operation: Operation) -> bool:
    """Return whether the client may perform `operation` on the cluster."""
    return allows(services, context, operation, ResourceType.CLUSTER, CLUSTER_NAME)
