"""DescribeClientQuotas (48), versions 0–1: the quotas of users, client ids and addresses that match a filter (KIP-546).

| match type | an entity matches if it has this type with |
|---|---|
| 0 | this name |
| 1 | the default |
| 2 | any name, or the default |

An entity has to match every component. With `strict` it must have no further types; without, no components match all.
The checks and texts are Kafka's: the entity types are `user`, `client-id` and `ip`, each at most once, `ip` without the
others (INVALID_REQUEST; UNSUPPORTED_VERSION for an unknown type). The versions differ in encoding only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek.broker.quotas.entities import IP, TYPES, Entity, shown
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2
_NAMES: Final = {_EXACT: "EXACT", _DEFAULT: "DEFAULT", _ANY: "SPECIFIED"}


def handle(
    services: Services, context: RequestContext, request: DescribeClientQuotasRequest
) -> Steps[DescribeClientQuotasResponse]:
    _check(request.components)
    return _describe(services, request)


def error_response(request: DescribeClientQuotasRequest, code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _describe(services: Services, request: DescribeClientQuotasRequest) -> Steps[DescribeClientQuotasResponse]:
    entries = []
    for entity, (limits, _) in services.metadata.image.client_quotas.items():
        yield
        if _matches(entity, request.components, strict=request.strict):
            values = [ValueData(kind, limit) for kind, limit in sorted(limits.items())]
            entries.append(EntryData([EntityData(*part) for part in entity], values))
    return DescribeClientQuotasResponse(entries=entries)


def _matches(entity: Entity, components: Sequence[ComponentData], *, strict: bool) -> bool:
    if strict and len(entity) != len(components):
        return False
    names = dict(entity)
    return all(
        component.entity_type in names
        and (component.match_type == _ANY or names[component.entity_type] == component.match)
        for component in components
    )


def _check(components: Sequence[ComponentData]) -> None:
    seen = set[str]()
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in seen:
            raise _invalid(f"Entity type {shown(kind)} cannot appear more than once in the filter.")
        if kind not in TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {shown(kind)}")
        if match_type not in _NAMES:
            raise _invalid(f"Unknown match type {match_type}")
        if match_type == _EXACT and component.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match_type != _EXACT and component.match is not None:
            raise _invalid(f"Request specified MATCH_TYPE_{_NAMES[match_type]}, but also specified a match string.")
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
