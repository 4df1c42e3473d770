"""ApiVersions (API key 18): a client reads which APIs and versions the broker serves.

It is the first request on nearly every connection, so client and broker have not agreed on versions yet (KIP-511). If
the broker does not support the version of the request, it responds in v0 with UNSUPPORTED_VERSION (35) and the range of
this API, and the client repeats the request. The response always has header v0, also with a flexible body.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i16, i32, i64, ignorable, message, since, string, tag


@message(key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsRequest(Message):
    """Versions 0–4, flexible from 3.

    v0–2 are empty; they differ in the response (KIP-35). v3 adds the client's name and version, for the broker's
    metrics (KIP-511). v4 also requests features whose minimum is 0, which older Java clients could not read
    (KAFKA-17011).
    """

    # Letters, digits, dots and hyphens, otherwise INVALID_REQUEST (42); the version likewise.
    client_software_name: Annotated[string, since(3), ignorable] = ""
    client_software_version: Annotated[string, since(3), ignorable] = ""


class ApiVersion(Structure):
    api_key: i16 = 0
    min_version: i16 = 0  # inclusive, as is the maximum
    max_version: i16 = 0


class SupportedFeatureKey(Structure):
    """The levels of a cluster-wide feature that this broker supports, both inclusive."""

    name: Annotated[string, since(3)] = ""
    min_version: Annotated[i16, since(3)] = 0
    max_version: Annotated[i16, since(3)] = 0


class FinalizedFeatureKey(Structure):
    """The level of a feature that is in force in the cluster."""

    name: Annotated[string, since(3)] = ""
    max_version_level: Annotated[i16, since(3)] = 0
    min_version_level: Annotated[i16, since(3)] = 0


@message(key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsResponse(Message):
    """Versions 0–4, flexible from 3; its header is v0 throughout.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219). v3 adds supported and
    finalized features as tagged fields (KIP-584), so that clients may ignore them. v4 includes features with minimum 0
    (KAFKA-17011). `zk_migration_ready` was for the migration from ZooKeeper to KRaft (KIP-866).
    """

    error_code: i16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    supported_features: Annotated[list[SupportedFeatureKey], since(3), tag(0), ignorable] = []
    # Increases with each change of a feature; -1: unknown, ignore the list.
    finalized_features_epoch: Annotated[i64, since(3), tag(1), ignorable] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], since(3), tag(2), ignorable] = []
    zk_migration_ready: Annotated[boolean, since(3), tag(3), ignorable] = False
