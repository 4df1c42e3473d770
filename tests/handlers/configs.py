"""Requests that change and describe properties, for the tests of both requests that change them."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_configs as legacy
from odradek.protocol.messages import incremental_alter_configs as incremental
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Response = incremental.AlterConfigsResourceResponse | legacy.AlterConfigsResourceResponse


async def change(
    wire: Wire,
    kind: int,
    resource: str,
    *operations: tuple[str, int, str | None],
    version: int = 1,
    validate_only: bool = False,
) -> Response:
    """Change properties one by one: name, operation, value."""
    configs = [incremental.AlterableConfig(*each) for each in operations]
    wanted = [incremental.AlterConfigsResource(kind, resource, configs)]
    [response] = (await wire.ask(incremental.IncrementalAlterConfigsRequest(wanted, validate_only), version)).responses
    assert (response.resource_type, response.resource_name) == (kind, resource)
    assert bool(response.error_message) == bool(response.error_code)
    return response  # type: ignore[no-any-return]


async def set_to(wire: Wire, kind: int, resource: str, **values: str) -> None:
    """Set properties, the dots in their names written as underscores."""
    operations = [(name.replace("_", "."), SET, value) for name, value in values.items()]
    response = await change(wire, kind, resource, *operations)
    assert response.error_code == ErrorCode.NONE, response


async def replace(
    wire: Wire,
    kind: int,
    resource: str,
    *configs: tuple[str, str | None],
    version: int = 2,
    validate_only: bool = False,
) -> Response:
    """Replace all properties."""
    wanted = [legacy.AlterConfigsResource(kind, resource, [legacy.AlterableConfig(*each) for each in configs])]
    [response] = (await wire.ask(legacy.AlterConfigsRequest(wanted, validate_only), version)).responses
    assert (response.resource_type, response.resource_name) == (kind, resource)
    assert bool(response.error_message) == bool(response.error_code)
    return response  # type: ignore[no-any-return]


async def own_values(wire: Wire, kind: int, resource: str) -> dict[str, str | None]:
    """The properties that were set for a resource at run time."""
    own = {TOPIC: 1, BROKER: 2 if resource else 3, GROUP: 8}[kind]
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, resource, None)])
    [result] = (await wire.ask(request, 4)).results
    assert result.error_code == ErrorCode.NONE
    return {row.name: row.value for row in result.configs if row.config_source == own}
