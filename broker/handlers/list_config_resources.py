"""ListConfigResources (74), versions 0–1: the names of the resources that have properties (KIP-1142).

| type | names |
|---|---|
| topic (2) | every topic |
| broker (4), broker logger (8) | every registered broker |
| client metrics (16) | none: they have no properties here |
| group (32) | every group with properties of its own |

A request without types means all of them; an unknown type is UNSUPPORTED_VERSION. Version 0 lists client metrics only.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.request.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_ALL = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(
    services: Services, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse | Steps[ListConfigResourcesResponse]:
    if context.api_version == 0:
        return ListConfigResourcesResponse()
    unknown = [kind for kind in request.resource_types if kind not in _ALL]
    if unknown:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there are no resources of type {unknown[0]}")
    return _list(services, dict.fromkeys(request.resource_types or _ALL))


def error_response(request: ListConfigResourcesRequest, code: ErrorCode, message: str) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code)


def _list(services: Services, kinds: Iterable[int]) -> Steps[ListConfigResourcesResponse]:
    rows = []
    for kind in kinds:
        for name in _names(services, kind):
            rows.append(ConfigResource(name, kind))
            yield
    return ListConfigResourcesResponse(config_resources=rows)


def _names(services: Services, kind: int) -> list[str]:
    image = services.metadata.image
    if kind == TOPIC:
        return sorted(image.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(node_id) for node_id in sorted(image.registered)]
    if kind == GROUP:
        return sorted(image.group_configs)
    return []
