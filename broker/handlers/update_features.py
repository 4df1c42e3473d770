"""UpdateFeatures (57), versions 0–2: change finalized levels of features (KIP-584).

All levels are changed or none. A refusal is INVALID_UPDATE_VERSION for the whole request; the success has a row for
each update before version 2. With `validate_only` (from version 1) nothing changes. Version 0 has no upgrade types:
every update is an upgrade and its flag for downgrades has no effect, as in Kafka. A new level is in effect when the
response is sent.
"""

from __future__ import annotations

from odradek.broker.metadata.administration.update_features import FeatureUpdate, update_features
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_DONE = "NONE"  # Kafka's text


async def handle(services: Services, context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    updates = [
        FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates
    ]
    await update_features(services.metadata, updates, validate_only=request.validate_only)
    results = [UpdatableFeatureResult(update.name, ErrorCode.NONE, _DONE) for update in updates]
    return UpdateFeaturesResponse(error_message=None, results=results if context.api_version < 2 else [])


def error_response(request: UpdateFeaturesRequest, code: ErrorCode, message: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=message or None)
