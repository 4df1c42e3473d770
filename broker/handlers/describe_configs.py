"""DescribeConfigs (32), versions 1–4: the properties of topics, this broker and groups, with sources and documentation.

| resource | name | rows |
|---|---|---|
| topic (2) | a topic | every topic property; UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION |
| broker (4) | this broker's id | every broker property; another id is INVALID_REQUEST |
| broker (4) | empty | the properties set for all brokers at run time, and min.insync.replicas |
| broker logger (8) | this broker's id | the level of every logger (KIP-412) |
| group (32) | a group id | every group property, even if the group does not exist; an empty id is INVALID_REQUEST |
| others | | INVALID_REQUEST |

An empty or null list of keys requests all rows. The rows have Kafka's order, whatever the order of the keys
(`config.describe_order`). Synonyms (KIP-226) and documentation (KIP-569) are included on request. Each resource fails
independently; so it does without DescribeConfigs on the topic or group, or for a broker on the cluster. The value of a
sensitive property is null.

A resource that is named twice is described once. Differs from Kafka, where a request of 50 kB that names the broker
10,000 times gets a response of more than a gigabyte.
"""

from __future__ import annotations

from odradek.broker.config.describe import (
    ConfigRow,
    Texts,
    describe_broker,
    describe_broker_defaults,
    with_cluster_defaults,
)
from odradek.broker.config.describe_order import BROKER_PROPERTIES, GROUP_PROPERTIES, TOPIC_PROPERTIES, in_kafkas_order
from odradek.broker.config.group_config import describe as describe_group
from odradek.broker.config.topic_config import describe
from odradek.broker.metadata.administration.topic_names import check_name
from odradek.broker.metadata.administration.topics import find_topic
from odradek.broker.metadata.image import TopicImage
from odradek.broker.request.broker_loggers import check_described_broker, describe_loggers
from odradek.broker.request.config_resources import BROKER, BROKER_LOGGER, GROUP, TOPIC, refusal_of_resource
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_Kind = tuple[int, str | frozenset[tuple[str, str]]]
"""What the rows of a resource depend on: its type; for topics and groups, the properties of their own; for others, the
name. A request of 1 MB may name 90,000 groups, most of them alike."""
_Rows = dict[_Kind, list[ConfigRow]]
"""All rows of a kind. A request may name the same resource with 10,000 lists of keys, and to make the rows of a broker
takes milliseconds."""
_Shared = dict[tuple[_Kind, frozenset[str]], list[DescribeConfigsResourceResult]]
"""What is answered for a kind and the wanted keys."""

_KEYS_AT_ONCE = 1000
_COUNTS = {TOPIC: TOPIC_PROPERTIES, BROKER: BROKER_PROPERTIES, GROUP: GROUP_PROPERTIES}


def handle(
    services: Services, context: RequestContext, request: DescribeConfigsRequest
) -> Steps[DescribeConfigsResponse]:
    results = []
    described = set()
    shared: _Shared = {}
    made: _Rows = {}
    for resource in request.resources:
        yield
        keys = yield from _keys(resource)
        wanted = (resource.resource_type, resource.resource_name, keys)
        if wanted not in described:
            described.add(wanted)
            refused = refusal_of_resource(services, context, Operation.DESCRIBE_CONFIGS, resource)
            if refused is not None:
                kind, name = resource.resource_type, resource.resource_name
                results.append(DescribeConfigsResult(refused.code, refused.detail, kind, name))
                continue
            results.append(_describe(services, request, resource, keys, shared, made))
    return DescribeConfigsResponse(results=results)


def _keys(resource: DescribeConfigsResource) -> Steps[frozenset[str]]:
    """The names that are asked for; none: all."""
    names = resource.configuration_keys or []
    keys = set[str]()
    for start in range(0, len(names), _KEYS_AT_ONCE):
        keys.update(names[start : start + _KEYS_AT_ONCE])
        yield
    return frozenset(keys)


def error_response(request: DescribeConfigsRequest, code: ErrorCode, message: str) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(code, message, resource.resource_type, resource.resource_name)
            for resource in request.resources
        ]
    )


def describe_topic(services: Services, topic: TopicImage) -> list[ConfigRow]:
    """Every property of a topic, with the value in effect on this broker."""
    return describe(
        services.config,
        topic.configs,
        dynamic=_set_at_run_time(services, services.config.node_id),
        dynamic_default=_set_for_all(services),
    )


def _set_at_run_time(services: Services, node_id: int) -> Texts:
    """The properties that were set at run time for a broker."""
    return services.metadata.image.broker_configs.get(node_id, ({}, 0))[0]


def _set_for_all(services: Services) -> Texts:
    """The properties that were set at run time for all brokers."""
    return with_cluster_defaults(services.config, services.metadata.image.broker_configs.get(None, ({}, 0))[0])


def _describe(
    services: Services,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    keys: frozenset[str],
    shared: _Shared,
    made: _Rows,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(ErrorCode.NONE, "", resource.resource_type, resource.resource_name)
    own = _own_properties(services, resource)
    kind: _Kind = (resource.resource_type, resource.resource_name if own is None else frozenset(own.items()))
    if (kind, keys) in shared:
        result.configs = shared[kind, keys]
        return result
    try:
        if kind not in made:
            made[kind] = _rows(services, resource)
    except KafkaError as error:
        result.error_code = error.code
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # as in Kafka, which sends no message with this code
            result.error_message = error.detail
    else:
        rows = made[kind]
        wanted = [row for row in rows if not keys or row.name in keys]
        result.configs = [_config(row, request) for row in in_kafkas_order(wanted, _count(resource, rows))]
        shared[kind, keys] = result.configs
    return result


def _own_properties(services: Services, resource: DescribeConfigsResource) -> Texts | None:
    """The properties that were set for a topic or group, on which its rows depend; None for anything else."""
    image, name = services.metadata.image, resource.resource_name
    if resource.resource_type == TOPIC and name in image.topics:
        return image.topics[name].configs
    if resource.resource_type == GROUP and name:
        return image.group_configs.get(name, ({}, 0))[0]
    return None


def _count(resource: DescribeConfigsResource, rows: list[ConfigRow]) -> int:
    """The number of rows that Kafka's response would have without a list of keys."""
    if resource.resource_type == BROKER and not resource.resource_name:
        return len(rows)
    return _COUNTS.get(resource.resource_type, len(rows))


def _rows(services: Services, resource: DescribeConfigsResource) -> list[ConfigRow]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        check_name(name)
        return describe_topic(services, find_topic(services.metadata.image, name=name))
    if resource.resource_type == BROKER:
        if not name:
            return describe_broker_defaults(_set_for_all(services))
        node_id = services.config.node_id
        check_described_broker(services, name, f"{node_id} or empty string,")
        return describe_broker(services.config, _set_at_run_time(services, node_id), _set_for_all(services))
    if resource.resource_type == BROKER_LOGGER:
        return describe_loggers(services, name)
    if resource.resource_type == GROUP:
        return _describe_group(services, name)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} are not supported")


def _describe_group(services: Services, group_id: str) -> list[ConfigRow]:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return describe_group(
        services.config,
        services.metadata.image.group_configs.get(group_id, ({}, 0))[0],
        dynamic=_set_at_run_time(services, services.config.node_id),
        dynamic_default=_set_for_all(services),
    )


def _config(row: ConfigRow, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = [DescribeConfigsSynonym(*synonym) for synonym in row.synonyms] if request.include_synonyms else []
    return DescribeConfigsResourceResult(
        row.name,
        row.value,
        row.read_only,
        row.source,
        row.sensitive,
        synonyms,
        row.type,
        row.documentation if request.include_documentation or not row.documentation else None,
    )
