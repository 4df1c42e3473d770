from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from tests.handlers.configs import BROKER, BROKER_LOGGER, TOPIC, own_values, replace
from tests.handlers.requests import create
from tests.wire import Wire

# Apache Kafka's broker hears of a change some milliseconds after the answer; tests/interop compares the answers.
pytestmark = pytest.mark.usefixtures("only_here")


@pytest.mark.parametrize("version", range(3))
async def test_properties_that_are_not_named_are_unset(wire: Wire, version: int) -> None:
    await create(wire, "t", retention_ms="5000", flush_ms="7")

    response = await replace(wire, TOPIC, "t", ("retention.ms", "6000"), ("segment.ms", "9000"), version=version)

    assert response.error_code == ErrorCode.NONE
    assert await own_values(wire, TOPIC, "t") == {"retention.ms": "6000", "segment.ms": "9000"}


async def test_a_brokers_properties_are_replaced(wire: Wire) -> None:
    for configs in ({"log.roll.ms": "70000"}, {"log.flush.interval.ms": "9"}, {}):
        assert (await replace(wire, BROKER, "1", *configs.items())).error_code == ErrorCode.NONE
        assert await own_values(wire, BROKER, "1") == configs


@pytest.mark.parametrize(
    ("kind", "resource", "configs", "code"),
    [
        (TOPIC, "t", [("retention.ms", "soon")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("no.such", "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("retention.ms", "1"), ("retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "missing", [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", [], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", [], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("node.id", "2")], ErrorCode.INVALID_REQUEST),
        (BROKER, "2", [("log.roll.ms", "70000")], ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "1", [("root", "INFO")], ErrorCode.INVALID_REQUEST),
        (3, "x", [], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_invalid_changes_are_refused(
    wire: Wire, kind: int, resource: str, configs: list[tuple[str, str | None]], code: ErrorCode
) -> None:
    await create(wire, "t", flush_ms="7")

    assert (await replace(wire, kind, resource, *configs)).error_code == code
    assert await own_values(wire, TOPIC, "t") == {"flush.ms": "7"}


async def test_validating_changes_nothing(wire: Wire) -> None:
    await create(wire, "t", flush_ms="7")

    assert (await replace(wire, TOPIC, "t", validate_only=True)).error_code == ErrorCode.NONE
    assert (await replace(wire, TOPIC, "t", ("no.such", "1"), validate_only=True)).error_code
    assert await own_values(wire, TOPIC, "t") == {"flush.ms": "7"}


async def test_a_resource_named_twice_is_refused(wire: Wire) -> None:
    await create(wire, "t")
    wanted = [AlterConfigsResource(TOPIC, "t", [AlterableConfig("flush.ms", text)]) for text in ("7", "8")]

    responses = (await wire.ask(AlterConfigsRequest(wanted), 2)).responses

    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert await own_values(wire, TOPIC, "t") == {}
