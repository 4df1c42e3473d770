"""DescribeClientQuotas (48), versions 0–1: no quotas, because there are none; an invalid request is refused.

The checks are Kafka's: the entity types are `user`, `client-id` and `ip`, each at most once, `ip` without the others
(INVALID_REQUEST; UNSUPPORTED_VERSION for an unknown type). A name goes with match type 0 and with no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_TYPES = ("user", "client-id", "ip")
_EXACT = 0
_MATCH_TYPES = (_EXACT, 1, 2)


def handle(
    services: Services, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    for component in request.components:
        _check(component)
    _check_combination([component.entity_type for component in request.components])
    return DescribeClientQuotasResponse(entries=[])


def error_response(request: DescribeClientQuotasRequest, code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _check(component: ComponentData) -> None:
    if not component.entity_type:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an entity type is empty")
    if component.match_type not in _MATCH_TYPES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no match type {component.match_type}")
    if (component.match_type == _EXACT) != (component.match is not None):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a name is given with match type 0, and with no other")
    if component.entity_type not in _TYPES:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there are no quotas for a {component.entity_type!r}")


def _check_combination(types: Sequence[str]) -> None:
    if len(set(types)) < len(types):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an entity type is named twice")
    if "ip" in types and len(types) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "quotas are for an ip or for users and client ids, not for both")
