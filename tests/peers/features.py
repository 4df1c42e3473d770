"""Finalized features of a server: read by ApiVersions, changed by UpdateFeatures."""

from __future__ import annotations

import asyncio

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.peers.server import Server
from tests.wire import Wire

TRANSACTION_VERSION = "transaction.version"
UPGRADE, SAFE_DOWNGRADE = 1, 2
_ATTEMPTS = 1000
_PAUSE = 0.02


def set_level(server: Server, feature: str, level: int) -> None:
    """Finalize a level, and return when the server reports it."""
    asyncio.run(_set_level(server, feature, level))


async def _set_level(server: Server, feature: str, level: int) -> None:
    async with Wire(server.host, server.port) as wire:
        before = await _level(wire, feature)
        if before == level:
            return
        kind = UPGRADE if level > before else SAFE_DOWNGRADE
        update = FeatureUpdateKey(feature, level, upgrade_type=kind)
        answer = await wire.ask(UpdateFeaturesRequest(60_000, [update]), 2)
        assert answer.error_code == ErrorCode.NONE, answer
        for _ in range(_ATTEMPTS):
            if await _level(wire, feature) == level:
                return
            await asyncio.sleep(_PAUSE)
    raise AssertionError(f"{feature} does not become {level}")


async def _level(wire: Wire, feature: str) -> int:
    """The finalized level: 0 if there is none."""
    versions = await wire.ask(ApiVersionsRequest("test", "1"), 4)
    levels = {each.name: each.max_version_level for each in versions.finalized_features}
    level: int = levels.get(feature, 0)
    return level
