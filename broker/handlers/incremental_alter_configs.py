"""IncrementalAlterConfigs (44), versions 0–1: change single properties of topics, brokers, loggers, groups (KIP-339).

`alter_configs` has the operations: set, delete, append to a list, subtract from a list. Properties that are
not named stay. Each resource succeeds or fails as a whole, independently of the others; `config_resources` lists the
resources and the refusals. With `validate_only` nothing changes. A change is in effect when the response is sent,
without a restart, also for topics and logs in use. The versions differ in encoding only.

Differs from Kafka: an unknown operation is INVALID_REQUEST for every resource. In Kafka it is UNKNOWN_SERVER_ERROR for
all resources but brokers, from an exception that is not handled.
"""

from __future__ import annotations

from odradek.broker.metadata.administration.alter_configs import Change, Operation
from odradek.broker.request.config_resources import alter_each
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    services: Services, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    outcomes = await alter_each(
        services, context, request.resources, _changes, replace=False, validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(responses=[_response(*outcome) for outcome in outcomes])


def error_response(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[_response(resource, code, message) for resource in request.resources]
    )


def _changes(resource: AlterConfigsResource) -> list[Change]:
    unknown = [config for config in resource.configs if config.config_operation not in set(Operation)]
    if unknown:
        config = unknown[0]
        what = f"Unknown operations type {config.config_operation} (of {config.name})"
        raise KafkaError(ErrorCode.INVALID_REQUEST, what)
    return [Change(config.name, config.value, Operation(config.config_operation)) for config in resource.configs]


def _response(resource: AlterConfigsResource, code: ErrorCode, message: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(code, message or None, resource.resource_type, resource.resource_name)
