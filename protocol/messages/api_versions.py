"""ApiVersions (API key 18)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i64, ignorable, message, since, string, tag


@message(key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsRequest(Message):
    """ApiVersionsRequest, versions 0–4, flexible from 3."""

    client_software_name: Annotated[string, since(3), ignorable] = ""
    client_software_version: Annotated[string, since(3), ignorable] = ""


class ApiVersion(Structure):
    api_key: i16 = 0
    min_version: i16 = 0
    max_version: i16 = 0


class SupportedFeatureKey(Structure):
    name: Annotated[string, since(3)] = ""
    min_version: Annotated[i16, since(3)] = 0
    max_version: Annotated[i16, since(3)] = 0


class FinalizedFeatureKey(Structure):
    name: Annotated[string, since(3)] = ""
    max_version_level: Annotated[i16, since(3)] = 0
    min_version_level: Annotated[i16, since(3)] = 0


@message(key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsResponse(Message):
    """ApiVersionsResponse, versions 0–4, flexible from 3."""

    error_code: i16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    supported_features: Annotated[list[SupportedFeatureKey], since(3), tag(0), ignorable] = []
    finalized_features_epoch: Annotated[i64, since(3), tag(1), ignorable] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], since(3), tag(2), ignorable] = []
    zk_migration_ready: Annotated[boolean, since(3), tag(3), ignorable] = False
