"""The cluster: its id, controller and brokers, its features, and the APIs that each broker serves."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import ApiRange, BrokerDescription, ClusterDescription, FeatureDescription, Results
from odradek.client.errors import broker_error
from odradek.client.network.connection import SOFTWARE_NAME, SOFTWARE_VERSION, Connection
from odradek.protocol.api import NAMES, by_key
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_DESCRIBE_CLUSTER_KEY = 60
_FIRST_WITH_FENCED_BROKERS = 2


async def describe_cluster(calls: Calls, *, include_fenced: bool, timeout_ms: int | None) -> ClusterDescription:
    tried = "describe the cluster"

    async def call(connection: Connection) -> ClusterDescription:
        version = connection.versions.highest(
            _DESCRIBE_CLUSTER_KEY, at_least=_FIRST_WITH_FENCED_BROKERS if include_fenced else 0
        )
        request = DescribeClusterRequest(include_fenced_brokers=include_fenced)
        response = await connection.send(request, DescribeClusterResponse, version=version)
        if response.error_code:
            raise broker_error(response.error_code, tried, response.error_message, broker=connection.name)
        brokers = sorted(response.brokers, key=lambda broker: broker.broker_id)
        return ClusterDescription(
            response.cluster_id,
            response.controller_id if response.controller_id >= 0 else None,
            tuple(BrokerDescription(one.broker_id, one.host, one.port, one.rack, one.is_fenced) for one in brokers),
        )

    return await calls.once(tried, call, timeout_ms)


async def describe_features(calls: Calls, *, node_id: int | None, timeout_ms: int | None) -> FeatureDescription:
    async def call(connection: Connection) -> FeatureDescription:
        response = await _api_versions(connection)
        finalized = {one.name: (one.min_version_level, one.max_version_level) for one in response.finalized_features}
        supported = {one.name: (one.min_version, one.max_version) for one in response.supported_features}
        return FeatureDescription(finalized, response.finalized_features_epoch, supported)

    return await calls.once("describe features", call, timeout_ms, node_id)


async def api_versions(calls: Calls, *, timeout_ms: int | None) -> Results[int, tuple[ApiRange, ...]]:
    async def call(connection: Connection, brokers: Sequence[int]) -> Outcomes[int, tuple[ApiRange, ...]]:
        return dict.fromkeys(brokers, _ranges(await _api_versions(connection)))

    async def attempt(brokers: Sequence[int]) -> Outcomes[int, tuple[ApiRange, ...]]:
        return await calls.at_brokers({broker: broker for broker in brokers}, call)

    return await calls.for_each("request API versions", sorted(calls.cluster.image.brokers), attempt, timeout_ms)


async def _api_versions(connection: Connection) -> ApiVersionsResponse:
    response = await connection.send(ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION), ApiVersionsResponse)
    if response.error_code:
        raise broker_error(response.error_code, "request API versions", broker=connection.name)
    return response


def _ranges(response: ApiVersionsResponse) -> tuple[ApiRange, ...]:
    """The APIs of either side."""
    theirs = {served.api_key: (served.min_version, served.max_version) for served in response.api_keys}
    ranges = []
    for key in sorted(theirs.keys() | NAMES.keys()):
        ours = None
        if key in NAMES:
            api = by_key(key)
            ours = (api.min_version, api.max_version)
        ranges.append(ApiRange(key, NAMES.get(key), theirs.get(key), ours))
    return tuple(ranges)
