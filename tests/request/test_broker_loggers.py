"""The levels of loggers through DescribeConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from tests.handlers.configs import APPEND, BROKER_LOGGER, DELETE, SET, change
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("only_here")  # Apache Kafka's loggers have other names
NAME = "odradek.broker.handlers.test_loggers"


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """A logger without a level; the root's is left as it was."""
    root_level = logging.root.level
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)
    logging.root.setLevel(root_level)


async def describe(wire: Wire, broker: str = "1", *names: str) -> DescribeConfigsResult:
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER_LOGGER, broker, list(names) or None)])
    [result] = (await wire.ask(request, 4)).results
    assert isinstance(result, DescribeConfigsResult)
    return result


async def level(wire: Wire, name: str = NAME) -> str | None:
    [row] = (await describe(wire, "1", name)).configs
    assert (row.name, row.config_source, row.read_only) == (name, 6, False)
    return row.value


async def test_every_logger_is_described(wire: Wire) -> None:
    names = [row.name for row in (await describe(wire)).configs]

    assert {"root", NAME, "asyncio"} <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "number"),
    [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)],
)
async def test_a_level_takes_effect_at_once(wire: Wire, logger: logging.Logger, name: str, number: int) -> None:
    assert (await change(wire, BROKER_LOGGER, "1", (NAME, SET, name))).error_code == ErrorCode.NONE

    assert logger.level == number
    assert await level(wire) == name


async def test_a_logger_without_a_level_has_that_of_its_parent(wire: Wire, logger: logging.Logger) -> None:
    await change(wire, BROKER_LOGGER, "1", ("root", SET, "ERROR"), (NAME, SET, "DEBUG"))
    assert (await level(wire), await level(wire, "root")) == ("DEBUG", "ERROR")

    assert (await change(wire, BROKER_LOGGER, "1", (NAME, DELETE, None))).error_code == ErrorCode.NONE

    assert await level(wire) == "ERROR"
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("resource", "operation", "code"),
    [
        ("1", ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", ("no.such.logger", DELETE, None), ErrorCode.INVALID_CONFIG),
        ("1", (NAME, SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", (NAME, APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("2", (NAME, SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", (NAME, SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_refused_changes_change_nothing(
    wire: Wire, logger: logging.Logger, resource: str, operation: tuple[str, int, str | None], code: ErrorCode
) -> None:
    response = await change(wire, BROKER_LOGGER, resource, ("asyncio", SET, "FATAL"), operation)

    assert response.error_code == code
    assert logging.getLogger("asyncio").level != logging.FATAL
    assert logger.level == logging.NOTSET


async def test_validating_changes_nothing(wire: Wire, logger: logging.Logger) -> None:
    response = await change(wire, BROKER_LOGGER, "1", (NAME, SET, "DEBUG"), validate_only=True)

    assert response.error_code == ErrorCode.NONE
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize("resource", ["", "2", "one"])
async def test_loggers_of_other_brokers_are_refused(wire: Wire, resource: str) -> None:
    assert (await describe(wire, resource)).error_code == ErrorCode.INVALID_REQUEST
