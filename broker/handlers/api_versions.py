"""ApiVersions (18), versions 0–4: the APIs and versions that this broker serves (KIP-35, KIP-511).

Every client sends it first on every connection. The answer has the rows of `apis.table`.

From version 3 on the client names its software; a name or version that is not letters, digits, dashes and dots is
INVALID_REQUEST (KIP-511). `server.dispatch` answers an unknown version in version 0 with UNSUPPORTED_VERSION, and the
client repeats the request in a version that is served.

The features are those of `metadata.features` (KIP-584). A finalized level of 0 is left out, as in Kafka. Supported
levels are reported from version 4 on, because earlier versions do not carry a minimum of 0.
"""

from __future__ import annotations

import re

from odradek.broker.metadata.features import FEATURES
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(services: Services, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= 3:
        for value in (request.client_software_name, request.client_software_version):
            if _SOFTWARE.fullmatch(value) is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the client software name or version is not well-formed")
    if context.connection.authentication is not None:
        context.connection.authentication.versions_answered()
    image = services.metadata.image
    return ApiVersionsResponse(
        api_keys=[ApiVersion(key, *versions) for key, versions in services.advertised_versions.items()],
        supported_features=_supported() if context.api_version >= 4 else [],
        finalized_features_epoch=image.revision,
        finalized_features=_finalized(image),
    )


def error_response(request: ApiVersionsRequest, code: ErrorCode, message: str) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=code)


def _supported() -> list[SupportedFeatureKey]:
    return [SupportedFeatureKey(name, feature.lowest, feature.highest) for name, feature in FEATURES.items()]


def _finalized(image: MetadataImage) -> list[FinalizedFeatureKey]:
    return [FinalizedFeatureKey(name, level, level) for name, level in image.features.items() if level]
