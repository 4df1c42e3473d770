"""ApiVersions (18), versions 0–4: what this broker serves (KIP-35, KIP-511).

Every client asks this first on every connection. Exactly the rows of `handlers.table` are told, with one exception:
Produce is told from version 0, as Apache Kafka does although neither serves 0 to 2 (they close the connection).
librdkafka takes a range without 0 for a broker that cannot store compressed batches, and then sends gzip, snappy and
lz4 uncompressed without a word.

From version 3 on the client names itself; a name or version that is not letters, digits, dashes and dots is
INVALID_REQUEST (KIP-511). A version that we do not know is answered by dispatch in version 0 with
UNSUPPORTED_VERSION, and the client asks again.

Of Kafka's features one is told (KIP-584): `group.version` 1, groups of the consumer protocol, supported from version 4
on, before which a minimum of 0 is not told, and finalized. Without `transaction.version` clients use the first
transaction protocol, which is the one that is served.
"""

from __future__ import annotations

import re

from odradek.broker.apis.table import ROWS
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

_PRODUCE = 0
_API_VERSIONS = 18
_TOLD_FROM = {_PRODUCE: 0}
_GROUP_VERSION = "group.version"
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(services: Services, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= 3:
        for value in (request.client_software_name, request.client_software_version):
            if _SOFTWARE.fullmatch(value) is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the client software name or version is not well-formed")
    return ApiVersionsResponse(
        api_keys=_served(),
        supported_features=[SupportedFeatureKey(_GROUP_VERSION, 0, 1)] if context.api_version >= 4 else [],
        finalized_features_epoch=services.metadata.image.revision,
        finalized_features=[FinalizedFeatureKey(_GROUP_VERSION, 1, 1)],
    )


def error_response(request: ApiVersionsRequest, code: ErrorCode, message: str) -> ApiVersionsResponse:
    """An unsupported version is told the range of this API, so that the client can ask again."""
    keys = [ApiVersion(_API_VERSIONS, *ROWS[_API_VERSIONS][1:])] if code is ErrorCode.UNSUPPORTED_VERSION else []
    return ApiVersionsResponse(error_code=code, api_keys=keys)


def _served() -> list[ApiVersion]:
    return [ApiVersion(key, _TOLD_FROM.get(key, row.min_version), row.max_version) for key, row in ROWS.items()]
