from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config.describe import describe_broker
from odradek.broker.handlers import describe_configs
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handle, Handler
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.handlers.requests import create
from tests.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
DYNAMIC_TOPIC, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = 1, 3, 4, 5


async def describe(
    wire: Wire, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **fields: Any
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], **fields)
    [result] = (await wire.ask(request, version)).results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


async def rows(wire: Wire, kind: int, name: str, **fields: Any) -> dict[str, DescribeConfigsResourceResult]:
    result = await describe(wire, kind, name, **fields)
    assert result.error_code == ErrorCode.NONE
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topic_has_properties_with_sources(wire: Wire, version: int) -> None:
    await create(wire, "t", max_message_bytes="2000")

    found = await rows(wire, TOPIC, "t", version=version)

    own, default = found["max.message.bytes"], found["segment.bytes"]
    assert (own.value, own.config_source, own.read_only, own.is_sensitive) == ("2000", DYNAMIC_TOPIC, False, False)
    assert (default.value, default.config_source) == ("1073741824", DEFAULT)
    assert own.synonyms == []
    assert own.config_type == (3 if version >= 3 else 0)


@pytest.mark.parametrize("keys", [["max.message.bytes", "no.such.key"], ["max.message.bytes"]])
async def test_only_the_named_keys_are_described(wire: Wire, keys: list[str]) -> None:
    await create(wire, "t")

    assert list(await rows(wire, TOPIC, "t", keys=keys)) == ["max.message.bytes"]
    assert len(await rows(wire, TOPIC, "t", keys=[])) > 20


async def test_synonyms_are_included_on_request(wire: Wire) -> None:
    await create(wire, "t", max_message_bytes="2000")

    row = (await rows(wire, TOPIC, "t", include_synonyms=True))["max.message.bytes"]

    assert [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms] == [
        ("max.message.bytes", "2000", DYNAMIC_TOPIC),
        ("message.max.bytes", "1048588", DEFAULT),
    ]


async def test_documentation_is_included_on_request(wire: Wire) -> None:
    await create(wire, "t")

    assert (await rows(wire, TOPIC, "t"))["retention.ms"].documentation is None
    assert (await rows(wire, TOPIC, "t", include_documentation=True))["retention.ms"].documentation


@pytest.mark.parametrize(
    ("name", "code"),
    [("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
async def test_an_unknown_topic_is_an_error(wire: Wire, name: str, code: ErrorCode) -> None:
    result = await describe(wire, TOPIC, name)

    assert (result.error_code, result.configs) == (code, [])


async def test_the_brokers_properties(broker: Broker, wire: Wire) -> None:
    found = await rows(wire, BROKER, "1")

    assert (found["log.segment.bytes"].value, found["log.segment.bytes"].config_source) == ("1073741824", DEFAULT)
    assert not found["log.segment.bytes"].read_only
    assert found["node.id"].read_only
    assert found["listeners"].config_source == STATIC_BROKER


async def test_min_insync_replicas_is_set_for_all_brokers_in_a_new_cluster(wire: Wire) -> None:
    await create(wire, "t")
    own = ("min.insync.replicas", "1", DYNAMIC_DEFAULT_BROKER)

    default = ("min.insync.replicas", "1", DEFAULT)
    for kind, name, rest in ((BROKER, "", []), (BROKER, "1", [default]), (TOPIC, "t", [default])):
        row = (await rows(wire, kind, name, include_synonyms=True))["min.insync.replicas"]
        assert (row.name, row.value, row.config_source) == own
        assert [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms] == [own, *rest]
    assert (await rows(wire, BROKER, "")).keys() == {"min.insync.replicas"}


async def test_rows_are_in_kafkas_order_for_any_keys(wire: Wire) -> None:
    await create(wire, "t")

    for kind, name, names in (
        (TOPIC, "t", ["cleanup.policy", "segment.bytes", "retention.ms"]),
        (BROKER, "1", ["num.io.threads", "sasl.kerberos.min.time.before.relogin", "advertised.listeners"]),
    ):
        for requested in (names, names[::-1]):
            assert [row.name for row in (await describe(wire, kind, name, requested)).configs] == names


async def test_there_is_no_message_where_kafka_has_none(wire: Wire) -> None:
    await create(wire, "t")

    for kind, name in (
        (TOPIC, "t"),
        (TOPIC, "missing"),
        (BROKER, "1"),
        (BROKER, ""),
        (BROKER_LOGGER, "1"),
        (GROUP, "g"),
    ):
        assert (await describe(wire, kind, name)).error_message == ""


@pytest.mark.parametrize(("kind", "name"), [(BROKER, "2"), (BROKER, "one"), (BROKER_LOGGER, "")])
async def test_resources_of_other_types_or_brokers_are_refused(wire: Wire, kind: int, name: str) -> None:
    result = await describe(wire, kind, name)

    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message


async def test_each_resource_fails_independently(wire: Wire) -> None:
    await create(wire, "t")
    resources = [DescribeConfigsResource(TOPIC, name, ["retention.ms"]) for name in ("missing", "t")]

    missing, found = (await wire.ask(DescribeConfigsRequest(resources), 4)).results

    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [row.name for row in found.configs] == ["retention.ms"]


async def test_topics_and_groups_that_are_alike_share_their_rows(broker: Broker, wire: Wire, only_here: None) -> None:
    """A request of 1 MB may name 90,000 groups: their rows, each built for itself, took 200 MB."""
    answers: list[DescribeConfigsResponse] = []

    def capture(handler: Handler) -> Handle:
        def handle(services: Any, context: RequestContext, request: Any) -> Any:
            answer = handler.handle(services, context, request)
            return _kept(answer, answers) if handler.api.name == "DescribeConfigs" else answer

        return handle

    await create(wire, "alike-1", retention_ms="1000")
    await create(wire, "alike-2", retention_ms="1000")
    await create(wire, "other", retention_ms="2000")
    broker.routes.add_interceptor(capture)
    resources = [DescribeConfigsResource(TOPIC, name, None) for name in ("alike-1", "other", "alike-2")]
    resources += [DescribeConfigsResource(GROUP, f"group-{number}", None) for number in range(100)]
    resources.append(DescribeConfigsResource(TOPIC, "alike-1", ["retention.ms"]))

    results = (await wire.ask(DescribeConfigsRequest(resources), 4)).results

    values = [[row.value for row in result.configs if row.name == "retention.ms"] for result in results]
    assert values[:3] + values[-1:] == [["1000"], ["2000"], ["1000"], ["1000"]]
    assert (len(results[0].configs), len(results[-1].configs)) == (len(results[1].configs), 1)
    assert all(result.configs == results[3].configs != [] for result in results[3:103])
    [answer] = answers
    assert len({id(result.configs) for result in answer.results}) == 4


async def test_a_broker_that_is_named_with_many_lists_of_keys_is_described_once(
    wire: Wire, only_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of 280 kB named it 4,000 times, and took the broker half a minute."""
    described = []

    def counted(*arguments: Any) -> Any:
        described.append(arguments)
        return describe_broker(*arguments)

    monkeypatch.setattr(describe_configs, "describe_broker", counted)
    resources = [DescribeConfigsResource(BROKER, "1", ["listeners", f"unknown-{number}"]) for number in range(100)]
    resources.append(DescribeConfigsResource(BROKER, "1", ["node.id"]))

    results = (await wire.ask(DescribeConfigsRequest(resources), 4)).results

    named = [[row.name for row in result.configs] for result in results]
    assert named == [["listeners"]] * 100 + [["node.id"]]
    assert len(described) == 1


def _kept(steps: Steps[Any], answers: list[DescribeConfigsResponse]) -> Steps[Any]:
    answer = yield from steps
    answers.append(answer)
    return answer
