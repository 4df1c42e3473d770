from __future__ import annotations

import pytest

from odradek.broker.apis.table import ROWS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.wire import Wire


@pytest.mark.parametrize("version", range(5))
@pytest.mark.usefixtures("only_here")  # there are more on Apache Kafka
async def test_every_version_lists_the_served_apis(wire: Wire, version: int) -> None:
    request = ApiVersionsRequest("kcat", "1.7.1") if version >= 3 else ApiVersionsRequest()

    response: ApiVersionsResponse = await wire.ask(request, version)

    assert response.error_code == ErrorCode.NONE
    versions = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert versions.keys() == ROWS.keys()
    assert versions[0] == (0, 13)
    assert all(versions[key] == (row.min_version, row.max_version) for key, row in ROWS.items() if key != 0)


@pytest.mark.parametrize("version", [3, 4])
async def test_groups_of_the_consumer_protocol_are_a_finalized_feature(wire: Wire, version: int) -> None:
    response = await wire.ask(ApiVersionsRequest("x", "1"), version)

    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    finalized = {each.name: (each.min_version_level, each.max_version_level) for each in response.finalized_features}
    assert supported.get("group.version") == (None if version == 3 else (0, 1))
    assert supported.get("transaction.version") == (None if version == 3 else (0, 2))
    assert finalized["group.version"] == (1, 1)
    assert finalized["metadata.version"] == (30, 30)  # 4.3-IV0
    assert response.finalized_features_epoch >= 0


@pytest.mark.usefixtures("only_here")  # there are more on Apache Kafka
async def test_transactions_are_a_finalized_feature(wire: Wire) -> None:
    response = await wire.ask(ApiVersionsRequest("x", "1"), 4)

    levels = {each.name: each.max_version_level for each in response.finalized_features}
    assert levels == {"group.version": 1, "transaction.version": 2, "metadata.version": 30}


async def test_an_unknown_version_is_answered_in_version_0(wire: Wire) -> None:
    wire.writer.write(bytes.fromhex("0000000b 0012 0063 00000001 0000 00".replace(" ", "")))

    response = await wire.receive(ApiVersionsRequest(), 0)

    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [(18, 0, 4)]
    assert (await wire.ask(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("name", ["", "-kcat", "kcat-", "k cat", "kc\u00e4t"])
async def test_an_invalid_software_name_is_refused(wire: Wire, name: str) -> None:
    response = await wire.ask(ApiVersionsRequest(name, "1.0"), 3)

    assert response.error_code == ErrorCode.INVALID_REQUEST
