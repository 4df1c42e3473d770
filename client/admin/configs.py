"""Configs of topics, brokers and groups: describe them, change single ones (KIP-226, KIP-339, KIP-569).

Requests about a broker's own configs go to that broker; those about all brokers, topics and groups to any broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from odradek.client.admin.arguments import ConfigChange, ConfigResource, ResourceType
from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import ConfigEntry, ConfigSource, ConfigSynonym, ConfigType, Results
from odradek.client.errors import ClientError, ConfigurationError, broker_error
from odradek.client.network.connection import Connection
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Configs = dict[str, ConfigEntry]


async def describe_configs(
    calls: Calls,
    resources: Iterable[ConfigResource],
    *,
    names: Collection[str] | None,
    include_synonyms: bool,
    include_documentation: bool,
    timeout_ms: int | None,
) -> Results[ConfigResource, Configs]:
    keys = None if names is None else list(names)

    async def call(connection: Connection, requested: Sequence[ConfigResource]) -> Outcomes[ConfigResource, Configs]:
        wanted = [DescribeConfigsResource(resource.type, resource.name, keys) for resource in requested]
        request = DescribeConfigsRequest(wanted, include_synonyms, include_documentation)
        response = await connection.send(request, DescribeConfigsResponse)
        outcomes: dict[ConfigResource, Configs | ClientError] = {}
        for result in response.results:
            resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
            outcomes[resource] = {config.name: _entry(config) for config in result.configs}
            if result.error_code:
                outcomes[resource] = _error(
                    resource, "describe configs", result.error_code, result.error_message, connection
                )
        return outcomes

    async def attempt(left: Sequence[ConfigResource]) -> Outcomes[ConfigResource, Configs]:
        return await calls.at_brokers(await _targets(calls, "describe configs", left), call)

    return await calls.for_each("describe configs", resources, attempt, timeout_ms)


async def alter_configs(
    calls: Calls,
    changes: Mapping[ConfigResource, Iterable[ConfigChange]],
    *,
    validate_only: bool,
    timeout_ms: int | None,
) -> Results[ConfigResource, None]:
    wanted = {
        resource: [AlterableConfig(change.name, change.operation, change.value) for change in of_resource]
        for resource, of_resource in changes.items()
    }

    async def call(connection: Connection, requested: Sequence[ConfigResource]) -> Outcomes[ConfigResource, None]:
        resources = [AlterConfigsResource(resource.type, resource.name, wanted[resource]) for resource in requested]
        request = IncrementalAlterConfigsRequest(resources, validate_only)
        response = await connection.send(request, IncrementalAlterConfigsResponse)
        outcomes: dict[ConfigResource, ClientError | None] = {}
        for result in response.responses:
            resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
            outcomes[resource] = None
            if result.error_code:
                outcomes[resource] = _error(
                    resource, "change configs", result.error_code, result.error_message, connection
                )
        return outcomes

    async def attempt(left: Sequence[ConfigResource]) -> Outcomes[ConfigResource, None]:
        return await calls.at_brokers(await _targets(calls, "change configs", left), call)

    return await calls.for_each("change configs", wanted, attempt, timeout_ms)


async def _targets(
    calls: Calls, tried: str, resources: Sequence[ConfigResource]
) -> dict[ConfigResource, int | ClientError | None]:
    """The broker to send each resource to, for `at_brokers`. Raises ConfigurationError."""
    targets: dict[ConfigResource, int | ClientError | None] = {}
    for resource in resources:
        node_id = _broker_of(resource)
        targets[resource] = None if node_id is None else await calls.existing_broker(f"{tried} of {resource}", node_id)
    return targets


def _broker_of(resource: ConfigResource) -> int | None:
    """The broker to send a resource to; None for any."""
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return None
    if not resource.name.isdecimal():
        raise ConfigurationError("find a broker", f"{resource.name!r} is not a node id", "Give the id in digits")
    return int(resource.name)


def _error(resource: ConfigResource, tried: str, code: int, detail: str | None, connection: Connection) -> ClientError:
    topic = resource.name if resource.type is ResourceType.TOPIC else None
    of = "" if topic else f" of {resource}"
    return broker_error(code, f"{tried}{of}", detail, broker=connection.name, topic=topic)


def _entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        result.name,
        result.value,
        ConfigSource(result.config_source),
        result.is_sensitive,
        result.read_only,
        ConfigType(result.config_type),
        tuple(ConfigSynonym(one.name, one.value, ConfigSource(one.source)) for one in result.synonyms),
        result.documentation,
    )
