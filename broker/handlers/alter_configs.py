"""AlterConfigs (33), versions 0–2: replace the properties of topics, brokers and groups (KIP-133).

A property that was set and that the request does not name is unset. This surprises many users, which is why clients now
send IncrementalAlterConfigs (KIP-339). Each resource succeeds or fails as a whole, independently of the others;
`config_resources` lists the resources and the refusals. With `validate_only` nothing changes. A change is in effect
when the response is sent, without a restart, also for topics and logs in use. The versions differ in encoding and
throttling only.
"""

from __future__ import annotations

from odradek.broker.metadata.administration.alter_configs import Change
from odradek.broker.request.config_resources import alter_each
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(services: Services, context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    outcomes = await alter_each(
        services, context, request.resources, _changes, replace=True, validate_only=request.validate_only
    )
    return AlterConfigsResponse(responses=[_response(*outcome) for outcome in outcomes])


def error_response(request: AlterConfigsRequest, code: ErrorCode, message: str) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[_response(resource, code, message) for resource in request.resources])


def _changes(resource: AlterConfigsResource) -> list[Change]:
    return [Change(config.name, config.value) for config in resource.configs]


def _response(resource: AlterConfigsResource, code: ErrorCode, message: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(code, message or None, resource.resource_type, resource.resource_name)
