"""UpdateFeatures (API key 57)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i8, ignorable, message, since, string, until


class FeatureUpdateKey(Structure):
    feature: string = ""
    max_version_level: i16 = 0
    allow_downgrade: Annotated[boolean, until(0)] = False
    upgrade_type: Annotated[i8, since(1)] = 1


@message(key=57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesRequest(Message):
    """UpdateFeaturesRequest, versions 0–2, flexible."""

    timeout_ms: i32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[boolean, since(1)] = False


class UpdatableFeatureResult(Structure):
    feature: string = ""
    error_code: i16 = 0
    error_message: string | None = ""


@message(key=57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesResponse(Message):
    """UpdateFeaturesResponse, versions 0–2, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    results: Annotated[list[UpdatableFeatureResult], until(1), ignorable] = []
