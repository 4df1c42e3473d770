"""The version of the transaction protocol of a running broker, changed as kafka-features.sh does (UpdateFeatures)."""

from __future__ import annotations

from odradek.client.config import AdminConfig, parse_bootstrap_servers
from odradek.client.network.cluster import Cluster
from odradek.client.network.transport import TcpNetwork
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

_FEATURE = "transaction.version"
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


async def set_transaction_version(bootstrap: str, level: int) -> None:
    """Finalize a level of transaction.version, and wait until ApiVersions returns it."""
    config = AdminConfig(bootstrap_servers=parse_bootstrap_servers(bootstrap), default_api_timeout_ms=10000)
    while (present := await _level(config)) != level:
        kind = _UPGRADE if level > present else _SAFE_DOWNGRADE
        await _change(config, level, kind)


async def _level(config: AdminConfig) -> int:
    cluster = Cluster(config, TcpNetwork())
    try:
        return (await cluster.any_connection()).versions.feature_level(_FEATURE)
    finally:
        await cluster.close()


async def _change(config: AdminConfig, level: int, kind: int) -> None:
    cluster = Cluster(config, TcpNetwork())
    try:
        connection = await cluster.any_connection()
        update = FeatureUpdateKey(_FEATURE, level, upgrade_type=kind)
        response = await connection.send(UpdateFeaturesRequest(feature_updates=[update]), UpdateFeaturesResponse)
        assert response.error_code in (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION), response
    finally:
        await cluster.close()
