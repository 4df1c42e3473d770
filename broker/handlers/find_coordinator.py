"""FindCoordinator (10), versions 0–6: where the coordinator of a group (type 0) or a transactional id (type 1) is.

Versions 0–3 ask for one key; from version 4 on (KIP-699) for several. There is no coordinator yet, so every key is
COORDINATOR_NOT_AVAILABLE, which clients retry: consumers with assigned partitions and no group work without one. Key
types that do not exist are INVALID_REQUEST; share groups (key type 2, from version 6 on) are not available either.
"""

from __future__ import annotations

from broker.handlers.services import Services
from broker.server.context import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_FIRST_VERSION_WITH_SEVERAL_KEYS = 4
_KEY_TYPES = (0, 1, 2)
_NO_COORDINATOR = "The coordinator is not available."


def handle(services: Services, context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.key_type not in _KEY_TYPES:
        message = f"unknown key type {request.key_type}"
        return _response(context.api_version, request, ErrorCode.INVALID_REQUEST, message)
    return _response(context.api_version, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_COORDINATOR)


def error_response(request: FindCoordinatorRequest, code: ErrorCode, message: str) -> FindCoordinatorResponse:
    several = bool(request.coordinator_keys)
    return _response(_FIRST_VERSION_WITH_SEVERAL_KEYS if several else 0, request, code, message)


def _response(version: int, request: FindCoordinatorRequest, code: ErrorCode, message: str) -> FindCoordinatorResponse:
    if version >= _FIRST_VERSION_WITH_SEVERAL_KEYS:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[Coordinator(key, -1, "", -1, code, message) for key in keys])
    return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)
