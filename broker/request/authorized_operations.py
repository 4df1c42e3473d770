"""The operations that a client may perform on the cluster, a topic or a group (KIP-430).

A set of operations is an int32 with the bits of their codes: 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe,
9 cluster action, 10 describe configs, 11 alter configs, 12 idempotent write. Without an authorizer it has every
operation that makes sense for the resource.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_cluster
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import CLUSTER_NAME, Operation, ResourceType

ALL_CLUSTER_OPERATIONS = 0b1_1111_1010_0000
ALL_TOPIC_OPERATIONS = 0b0_1101_1111_1000
ALL_GROUP_OPERATIONS = 0b0_1101_0100_1000

NOT_REQUESTED = -0x80000000
"""The value in place of a set that the request does not want."""


def operations_on_cluster(services: Services, context: RequestContext) -> int:
    """Return the operations that the client may perform on the cluster; none if it may not describe it."""
    if not allows_on_cluster(services, context, Operation.DESCRIBE):
        return 0
    return _operations(services, context, ResourceType.CLUSTER, CLUSTER_NAME, ALL_CLUSTER_OPERATIONS)


def operations_on_topic(services: Services, context: RequestContext, name: str) -> int:
    """Return the operations that the client may perform on a topic."""
    return _operations(services, context, ResourceType.TOPIC, name, ALL_TOPIC_OPERATIONS)


def operations_on_group(services: Services, context: RequestContext, group_id: str) -> int:
    """Return the operations that the client may perform on a group."""
    return _operations(services, context, ResourceType.GROUP, group_id, ALL_GROUP_OPERATIONS)


def _operations(
    services: Services, context: RequestContext, resource_type: ResourceType, name: str, possible: int
) -> int:
    """Return the allowed ones of the `possible` operations. They are not kept with the connection: they are many."""
    authorizer = services.authorizer
    if authorizer is None:
        return possible
    principal, host = context.connection.principal, context.connection.peer_address[0]
    allowed = 0
    for operation in Operation:
        bit = 1 << operation
        if possible & bit and authorizer.allows(principal, host, operation, resource_type, name):
            allowed |= bit
    return allowed
