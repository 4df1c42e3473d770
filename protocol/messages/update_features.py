"""UpdateFeatures (API key 57): an admin client raises or lowers cluster-wide feature levels (KIP-584)."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, ignorable, message, since, string, until


class FeatureUpdateKey(Structure):
    feature: string = ""
    max_version_level: i16 = 0  # the new level; below 1 removes the feature
    allow_downgrade: Annotated[boolean, until(0)] = False
    upgrade_type: Annotated[i8, since(1)] = 1  # 1 upgrade, 2 safe downgrade, 3 downgrade with loss


@message(key=57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesRequest(Message):
    """Versions 0–2, flexible.

    v1 replaces the flag that allows downgrades by three types of change, and adds `validate_only` (KIP-778). v2 changes
    only the response.
    """

    timeout_ms: i32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[boolean, since(1)] = False  # check all, change nothing


class UpdatableFeatureResult(Structure):
    feature: string = ""
    error_code: i16 = 0
    error_message: string | None = ""


@message(key=57, versions=(0, 2), flexible_since=0)
class UpdateFeaturesResponse(Message):
    """Versions 0–2, flexible.

    v2 removes the results by feature: all are changed or none.
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    results: Annotated[list[UpdatableFeatureResult], until(1), ignorable] = []
