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
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_DONE = "NONE"  # Kafka's text
_FIRST_VERSION_WITHOUT_ROWS = 2


async def handle(services: Services, context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    time_slice = services.time_slices.begin(context.connection)
    updates = await time_slice.map(_update, request.feature_updates)
    await update_features(services.metadata, updates, validate_only=request.validate_only, pause=time_slice.step)
    named = updates if context.api_version < _FIRST_VERSION_WITHOUT_ROWS else []
    return UpdateFeaturesResponse(error_message=None, results=await time_slice.map(_result, named))


def error_response(request: UpdateFeaturesRequest, code: ErrorCode, message: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=message or None)


def _update(each: FeatureUpdateKey) -> FeatureUpdate:
    return FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)


def _result(update: FeatureUpdate) -> UpdatableFeatureResult:
    return UpdatableFeatureResult(update.name, ErrorCode.NONE, _DONE)
