"""The resources whose properties can be changed, and the checks that AlterConfigs and IncrementalAlterConfigs share.

| resource | name | changed by |
|---|---|---|
| topic (2) | a topic | `alter_configs.alter_topic_configs` |
| broker (4) | this broker's id, or empty for all brokers | `alter_configs.alter_broker_configs` |
| broker logger (8) | this broker's id | `broker_loggers.alter_loggers`, by IncrementalAlterConfigs only |
| group (32) | any group id | `alter_configs.alter_group_configs` |

Without AlterConfigs on the topic or group, or for a broker or logger on the cluster, a resource is
TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED.

INVALID_REQUEST: a resource or a property that is named more than once, a null value, another broker's id, and any other
type of resource. Differs from Kafka, which also stores properties for client metrics (16): this broker requests no
metrics from clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from odradek.broker.metadata.administration.alter_configs import (
    Change,
    Operation,
    alter_broker_configs,
    alter_group_configs,
    alter_topic_configs,
)
from odradek.broker.metadata.administration.topic_writes import Report
from odradek.broker.request.broker_loggers import alter_loggers
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import CLUSTER_NAME, ResourceType
from odradek.protocol.access_rules import Operation as Right
from odradek.protocol.errors import ErrorCode, KafkaError

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32


class Resource(Protocol):
    """The fields that the resources of both requests have."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)


async def alter_each(
    services: Services,
    context: RequestContext,
    resources: Sequence[R],
    changes_of: Callable[[R], Sequence[Change]],
    *,
    replace: bool,
    validate_only: bool,
) -> list[tuple[R, ErrorCode, str]]:
    """Change the properties of each resource independently; return each with NONE, or with its error and message.

    `changes_of` may raise `KafkaError`. With `replace`, properties that the changes do not name are unset.
    """
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    outcomes = []
    time_slice = services.time_slices.begin(context.connection)
    for resource in resources:
        await time_slice.step()
        code, detail = ErrorCode.NONE, ""
        try:
            is_for_increments = resource.resource_type == BROKER_LOGGER and replace  # refused for everybody
            refused = refusal_of_resource(services, context, Right.ALTER_CONFIGS, resource)
            if refused is not None and not is_for_increments:
                raise refused
            changes = changes_of(resource)
            _check_changes(named[resource.resource_type, resource.resource_name], changes)
            report = services.topic_log.alterations(context, [change.name for change in changes])
            await _alter(services, resource, changes, report, replace=replace, validate_only=validate_only)
        except KafkaError as error:
            code, detail = error.code, error.detail
        outcomes.append((resource, code, detail))
    return outcomes


def refusal_of_resource(
    services: Services, context: RequestContext, right: Right, resource: Resource
) -> KafkaError | None:
    """Return the error of a client without `right` on the resource; None for a type that does not exist."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC:
        return refusal_of(services, context, right, ResourceType.TOPIC, name)
    if kind == GROUP:
        return refusal_of(services, context, right, ResourceType.GROUP, name)
    if kind in (BROKER, BROKER_LOGGER, CLIENT_METRICS):
        return refusal_of(services, context, right, ResourceType.CLUSTER, CLUSTER_NAME)
    return None


def _check_changes(times_named: int, changes: Sequence[Change]) -> None:
    """Raise `KafkaError` INVALID_REQUEST for changes that are invalid for every resource."""
    if times_named > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [change.name for change in changes if change.value is None and change.operation is not Operation.DELETE]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


async def _alter(
    services: Services,
    resource: Resource,
    changes: Sequence[Change],
    report: Report,
    *,
    replace: bool,
    validate_only: bool,
) -> None:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        await alter_topic_configs(
            services.metadata, name, changes, replace=replace, validate_only=validate_only, report=report
        )
    elif resource.resource_type == BROKER:
        await _alter_broker(services, name, changes, replace=replace, validate_only=validate_only)
    elif resource.resource_type == BROKER_LOGGER and not replace:
        alter_loggers(services, name, changes, validate_only=validate_only)
    elif resource.resource_type == GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        await alter_group_configs(services.metadata, name, changes, replace=replace, validate_only=validate_only)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")


def _node_id(services: Services, name: str) -> int:
    """Return this broker's id, which `name` must be. Raises `KafkaError` INVALID_REQUEST."""
    node_id = services.config.node_id
    try:
        named = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None
    if named != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    return node_id


async def _alter_broker(
    services: Services, name: str, changes: Sequence[Change], *, replace: bool, validate_only: bool
) -> None:
    node_id = _node_id(services, name) if name else None
    alter = partial(alter_broker_configs, services.metadata, node_id, changes, replace=replace)
    listeners = services.certificates.altered(changes)
    if listeners:
        await alter(validate_only=True)  # reads no file for a change that is refused
        await services.certificates.check(listeners)
        if not validate_only:
            await services.certificates.load(listeners)
    await alter(validate_only=validate_only)
