from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.broker.replicating import three_brokers
from tests.wire import Wire

NAME = "transaction.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.fixture(autouse=True)
async def highest_level(wire: Wire) -> AsyncIterator[None]:
    """Leave Apache Kafka, which all tests share, as it was."""
    yield
    await change(wire, 2, UPGRADE)


async def change(wire: Wire, level: int, kind: int, version: int = 2, **options: Any) -> UpdateFeaturesResponse:
    key = (
        FeatureUpdateKey(NAME, level, upgrade_type=kind)
        if version
        else FeatureUpdateKey(NAME, level, options.pop("flag"))
    )
    response = await wire.ask(UpdateFeaturesRequest(feature_updates=[key], **options), version)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


async def finalized(wire: Wire) -> int:
    """The level that ApiVersions reports; 0 if it reports none."""
    response = await wire.ask(ApiVersionsRequest("x", "1"), 4)
    return {each.name: each.max_version_level for each in response.finalized_features}.get(NAME, 0)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_level_goes_down_and_up(wire: Wire, version: int) -> None:
    for level, kind in ((2, UPGRADE), (1, SAFE), (0, UNSAFE), (0, SAFE), (1, UPGRADE), (2, UPGRADE), (0, SAFE)):
        response = await change(wire, level, kind, version)

        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert [(row.feature, row.error_code) for row in response.results] == ([(NAME, 0)] if version == 1 else [])
        assert await finalized(wire) == level


@pytest.mark.parametrize("version", [1, 2])
async def test_a_validated_change_changes_nothing(wire: Wire, version: int) -> None:
    response = await change(wire, 0, SAFE, version, validate_only=True)

    assert response.error_code == ErrorCode.NONE
    assert await finalized(wire) == 2


async def test_version_0_only_raises_levels(wire: Wire) -> None:
    for flag in (False, True):
        assert (await change(wire, 1, 0, 0, flag=flag)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    await change(wire, 0, SAFE)

    response = await change(wire, 1, 0, 0, flag=False)

    assert [(row.feature, row.error_code) for row in response.results] == [(NAME, 0)]
    assert await finalized(wire) == 1


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("", 1, UPGRADE),
        ("unknown.version", 1, UPGRADE),
        ("unknown.version", 0, SAFE),
        (NAME, -1, SAFE),
        (NAME, 3, UPGRADE),
        (NAME, 2, UPGRADE),  # the level is 1
        (NAME, 2, SAFE),
        (NAME, 0, UPGRADE),
        (NAME, 0, 0),
        (NAME, 0, 4),
        ("group.version", 0, UPGRADE),
        ("group.version", 2, UPGRADE),
        ("metadata.version", 0, SAFE),
        ("metadata.version", 29, UPGRADE),
        ("metadata.version", 32_000, UPGRADE),
    ],
)
async def test_one_bad_update_refuses_all(wire: Wire, version: int, name: str, level: int, kind: int) -> None:
    await change(wire, 1, SAFE)
    updates = [FeatureUpdateKey(NAME, 0, upgrade_type=SAFE), FeatureUpdateKey(name, level, upgrade_type=kind)]
    is_valid = (name, level, kind) == (NAME, 2, UPGRADE)

    response = await wire.ask(UpdateFeaturesRequest(feature_updates=updates), version)

    assert response.error_code == (ErrorCode.NONE if is_valid else ErrorCode.INVALID_UPDATE_VERSION)
    assert name in (response.error_message or name)
    assert response.results == [] or is_valid
    assert await finalized(wire) == (2 if is_valid else 1)


async def test_the_metadata_version_may_be_set_to_what_it_is(wire: Wire) -> None:
    update = FeatureUpdateKey("metadata.version", 30, upgrade_type=UPGRADE)

    response = await wire.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)


@pytest.mark.usefixtures("only_here")  # Apache Kafka can lower it
async def test_the_metadata_version_has_one_level(wire: Wire) -> None:
    update = FeatureUpdateKey("metadata.version", 29, upgrade_type=SAFE)

    response = await wire.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)

    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "only supports versions 30-30" in response.error_message


@pytest.mark.usefixtures("only_here")  # Apache Kafka can switch the consumer protocol off
async def test_the_consumer_protocol_stays_on(wire: Wire) -> None:
    update = FeatureUpdateKey("group.version", 0, upgrade_type=SAFE)

    response = await wire.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)

    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "always served" in response.error_message


async def test_no_updates(wire: Wire) -> None:
    response = await wire.ask(UpdateFeaturesRequest(), 2)

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)


async def test_the_image_has_the_level(wire: Wire, broker: Broker) -> None:
    assert broker.services.metadata.image.features == {"group.version": 1, NAME: 2, "metadata.version": 30}

    await change(wire, 1, SAFE)

    assert broker.services.metadata.image.transaction_version == 1


@pytest.mark.usefixtures("only_here")
async def test_a_level_is_kept_over_a_restart(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path / "data")}
    async with Broker(properties) as started, Wire("127.0.0.1", started.port) as wire:
        assert (await change(wire, 1, SAFE)).error_code == ErrorCode.NONE

    async with Broker(properties) as started, Wire("127.0.0.1", started.port) as wire:
        assert await finalized(wire) == 1
        assert started.services.metadata.image.transaction_version == 1


@pytest.mark.usefixtures("only_here")
async def test_a_level_is_that_of_all_brokers_also_of_one_that_was_away(tmp_path: Path) -> None:
    async with three_brokers(tmp_path) as cluster:
        await cluster.stop(3)
        async with Wire("127.0.0.1", cluster.brokers[2].port) as wire:
            assert (await change(wire, 0, SAFE)).error_code == ErrorCode.NONE
            assert await finalized(wire) == 0
        await cluster.start(3)

        for broker in cluster.brokers.values():
            await cluster.until(lambda broker=broker: broker.services.metadata.image.transaction_version == 0)
            async with Wire("127.0.0.1", broker.port) as wire:
                assert await finalized(wire) == 0
