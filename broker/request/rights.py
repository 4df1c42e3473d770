"""The rights of the client of a request. Without an authorizer (`authorizer.class.name`), it may do everything.

`broker.apis.rights_table` lists the right that each API needs. The table itself checks those that a request needs as a
whole, on the cluster; handlers check the others with the functions here.

| without the right | the answer |
|---|---|
| on a topic, by name | TOPIC_AUTHORIZATION_FAILED, whether the topic exists or not |
| on a topic, by id | the same; UNKNOWN_TOPIC_ID without Describe |
| on a group, a transactional id, the cluster | GROUP_, TRANSACTIONAL_ID_, CLUSTER_AUTHORIZATION_FAILED |

Lists omit what the client may not describe. Differs from Kafka, which confirms the existence of a topic id.

Decisions that allow are kept with the connection until the rules or its principal change. Refusals are not, because a
client can ask for any number of names that it has no right to. A request that waits is decided again before its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from odradek.broker.request.context import Decisions, RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import CLUSTER_NAME, Operation, ResourceType
from odradek.protocol.api import NAMES
from odradek.protocol.errors import ErrorCode, KafkaError, unknown_topic_id

_MOST_DECISIONS = 4096
_LONGEST_NAME = 256
"""More decisions, and those about longer names, are not kept: those of a connection take two megabytes at most."""

_REFUSALS = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


def error_for(resource_type: ResourceType) -> KafkaError:
    """Return the error of a client without the right on a topic, a group, the cluster or a transactional id."""
    return KafkaError(*_REFUSALS[resource_type])


def refused(
    services: Services, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
) -> KafkaError:
    """Return the error for a refused operation. Every refusal that a client sees passes here, so the audit log has it.

    Nothing is refused if a list only omits a resource, or if another right is enough in place of the missing one.
    """
    authorizer = services.authorizer
    if authorizer is not None:
        connection = context.connection
        decision = authorizer.decide(connection.principal, connection.peer_address[0], operation, resource_type, name)
        rule = decision.reason.value if decision.rule is None else str(decision.rule)
        services.audit.refused(context, NAMES[context.api_key], operation.name, f"{resource_type.name} {name}", rule)
    return error_for(resource_type)


def allows(
    services: Services, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
) -> bool:
    """Return whether the client may perform `operation` on the resource `name`."""
    authorizer = services.authorizer
    if authorizer is None:
        return True
    connection = context.connection
    decisions = connection.decisions
    if decisions is None or decisions.version != authorizer.version or decisions.principal is not connection.principal:
        decisions = connection.decisions = Decisions(authorizer.version, connection.principal)
    question = (operation, resource_type, name)
    allowed = question in decisions.allowed
    if not allowed:
        allowed = authorizer.allows(connection.principal, connection.peer_address[0], operation, resource_type, name)
        if allowed and len(name) <= _LONGEST_NAME and len(decisions.allowed) < _MOST_DECISIONS:
            decisions.allowed.add(question)
    services.metrics.authorizations[allowed] += 1
    return allowed


def allows_on_cluster(services: Services, context: RequestContext, operation: Operation) -> bool:
    """Return whether the client may perform `operation` on the cluster."""
    return allows(services, context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def allows_on_topic(services: Services, context: RequestContext, operation: Operation, name: str) -> bool:
    """Return whether the client may perform `operation` on a topic."""
    return allows(services, context, operation, ResourceType.TOPIC, name)


def allows_on_any(
    services: Services, context: RequestContext, operation: Operation, resource_type: ResourceType
) -> bool:
    """Return whether there is a resource of this type on which the client may perform `operation`."""
    authorizer = services.authorizer
    if authorizer is None:
        return True
    connection = context.connection
    return authorizer.allows_on_any(connection.principal, connection.peer_address[0], operation, resource_type)


def check(
    services: Services, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
) -> None:
    """Raise `KafkaError` with the code for the type if the client may not perform `operation` on the resource."""
    if not allows(services, context, operation, resource_type, name):
        raise refused(services, context, operation, resource_type, name)


def check_on_cluster(services: Services, context: RequestContext, *operations: Operation) -> None:
    """Raise `KafkaError` CLUSTER_AUTHORIZATION_FAILED if the client may perform none of `operations` on the cluster."""
    if not any(allows_on_cluster(services, context, operation) for operation in operations):
        raise refused(services, context, operations[0], ResourceType.CLUSTER, CLUSTER_NAME)


def refusal_of(
    services: Services, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
) -> KafkaError | None:
    """Return the error that `check` raises, or None."""
    if allows(services, context, operation, resource_type, name):
        return None
    return refused(services, context, operation, resource_type, name)


def topic_filter(services: Services, context: RequestContext) -> Callable[[str], bool] | None:
    """Return a function that tells whether the client may describe a topic; None without an authorizer.

    It keeps no decisions, so that a thread may call it.
    """
    authorizer = services.authorizer
    if authorizer is None:
        return None
    principal, host = context.connection.principal, context.connection.peer_address[0]
    return partial(authorizer.allows, principal, host, Operation.DESCRIBE, ResourceType.TOPIC)


def refusal_of_topic(
    services: Services, context: RequestContext, operation: Operation, name: str, topic_id: bytes, *, by_id: bool
) -> KafkaError | None:
    """Return the error for a topic that a request names or, with `by_id`, gives the id of; None if it is allowed.

    None, too, for an id that does not exist: that is the caller's to refuse.
    """
    if services.authorizer is None:
        return None
    if not by_id:
        return refusal_of(services, context, operation, ResourceType.TOPIC, name)
    topic = services.metadata.image.topics_by_id.get(topic_id)
    if topic is None or allows_on_topic(services, context, operation, topic.name):
        return None
    error = refused(services, context, operation, ResourceType.TOPIC, topic.name)
    if allows_on_topic(services, context, Operation.DESCRIBE, topic.name):
        return error
    return unknown_topic_id(topic_id)
