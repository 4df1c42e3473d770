"""`topics`, `configs` and `cluster` with real brokers: Odradek and Apache Kafka."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odradek.client import Producer, cli
from odradek.client.cli.output.tables import print_rows
from tests.client.cli.commands import becomes, run, run_json
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("odradek", "apache")


async def said(*arguments: str, status: int = 0) -> str:
    out, err = await run(*arguments, status=status)
    return b"\n".join(out).decode() + err


async def test_a_topic_from_its_creation_to_its_deletion(bootstrap: str, topic: str) -> None:
    at = ("--bootstrap-server", bootstrap)
    its = (*at, "--topic", topic)
    create = ("topics", "create", *its, "--partitions", "2", "--config", "segment.bytes=1048576")
    assert await said(*create, "--validate-only") == f"{topic} could be created"
    assert await said(*create) == f"{topic} is created"
    assert "TOPIC_ALREADY_EXISTS" in await said(*create, status=1)
    assert await said(*create, "--if-not-exists") == ""

    listed = {row["topic"]: row for row in await run_json("topics", "list", *at)}
    assert (listed[topic]["partitions"], listed[topic]["internal"]) == (2, False)
    [described] = await run_json("topics", "describe", *its, "--offsets")
    assert described["configs"] == {"segment.bytes": "1048576"}
    assert described["topic_id"] == listed[topic]["topic_id"]
    leader = described["partitions"][0]["leader"]
    assert described["partitions"][1] == {
        "partition": 1, "leader": leader, "leader_epoch": 0, "replicas": [leader], "isr": [leader],
        "offline_replicas": [], "log_start_offset": 0, "log_end_offset": 0,
    }  # fmt: skip
    first, heading, *rows = (await said("topics", "describe", *its)).splitlines()
    assert first == f"{topic}  id {described['topic_id']}  2 partitions  replication factor 1  segment.bytes=1048576"
    assert heading == "PARTITION  LEADER  LEADER-EPOCH  REPLICAS  ISR  OFFLINE-REPLICAS"
    assert [row.split() for row in rows] == [
        [str(number), *f"{leader} 0 {leader} {leader} -".split()] for number in (0, 1)
    ]

    assert await said("topics", "delete", *its) == f"{topic} is deleted"
    assert f"error: there is no topic {topic}" in await said("topics", "delete", *its, status=1)
    assert await said("topics", "delete", *its, "--if-exists") == ""


async def test_replicas_can_be_assigned_by_hand(bootstrap: str, topic: str) -> None:
    its = ("--bootstrap-server", bootstrap, "--topic", topic)
    [broker] = (await run_json("cluster", "describe", *its[:2]))["brokers"]
    node = broker["broker"]
    await run("topics", "create", *its, "--replica-assignment", f"{node},{node},{node}")
    [described] = await run_json("topics", "describe", *its)
    assert [row["replicas"] for row in described["partitions"]] == [[node]] * 3
    assert "REPLICA" in await said("topics", "create", *its[:-1], f"{topic}-2", "--replica-assignment", "77", status=1)


async def test_a_topic_grows_and_loses_its_oldest_records(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    its = ("--bootstrap-server", bootstrap, "--topic", topic)
    async with Producer(bootstrap) as producer:
        for number in range(10):
            await producer.send(topic, b"x", partition=number % 2)
    before = ("topics", "delete-records", *its, "--before-offset")
    assert await run_json(*before, "3", "--partition", "1") == [
        {"topic": topic, "partition": 1, "log_start_offset": 3}
    ]  # fmt: skip
    assert "OFFSET_OUT_OF_RANGE" in await said(*before, "99", "--partition", "1", status=1)
    assert [row["log_start_offset"] for row in await run_json(*before, "latest")] == [5, 5]

    alter = ("topics", "alter", *its)
    assert await said(*alter, "--partitions", "4", "--config", "retention.ms=5") == f"{topic} is altered"

    async def described() -> tuple[int, dict[str, str]]:
        [its_topic] = await run_json("topics", "describe", *its)
        return len(its_topic["partitions"]), its_topic["configs"]

    await becomes(described, (4, {"retention.ms": "5"}))
    await run(*alter, "--delete-config", "retention.ms")
    await becomes(described, (4, {}))
    assert "INVALID_PARTITIONS" in await said(*alter, "--partitions", "3", status=1)


async def test_configs_of_a_topic_and_of_brokers(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    of_topic = ("--bootstrap-server", bootstrap, "--topic", topic)

    async def described(*arguments: str) -> dict[str, Any]:
        return {row["name"]: row for row in await run_json("configs", "describe", *arguments)}

    async def values(*arguments: str) -> dict[str, str]:
        return {name: row["value"] for name, row in (await described(*arguments)).items()}

    alter = ("configs", "alter", *of_topic)
    change = ("--add-config", "cleanup.policy=[compact,delete],retention.ms=[60000]")  # brackets around a comma, or not
    assert await said(*alter, *change, "--validate-only") == f"the configs of topic {topic} could be altered"
    assert await described(*of_topic) == {}
    assert await said(*alter, *change) == f"the configs of topic {topic} are altered"
    await becomes(lambda: values(*of_topic), {"cleanup.policy": "compact,delete", "retention.ms": "60000"})
    assert (await described(*of_topic))["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    await run(*alter, "--subtract-config", "cleanup.policy=compact", "--delete-config", "retention.ms")
    await becomes(lambda: values(*of_topic), {"cleanup.policy": "delete"})
    everything = await described(*of_topic, "--all", "--documentation")
    assert everything["segment.bytes"]["type"] == "INT"
    assert "segment" in everything["segment.bytes"]["documentation"]
    assert "INVALID_CONFIG" in await said(*alter, "--add-config", "retention.ms=soon", status=1)

    defaults = ("--bootstrap-server", bootstrap, "--broker-defaults")
    before = await values(*defaults)
    await run("configs", "alter", *defaults, "--add-config", "log.retention.ms=123456")
    await becomes(lambda: values(*defaults), before | {"log.retention.ms": "123456"})
    await run("configs", "alter", *defaults, "--delete-config", "log.retention.ms")
    await becomes(lambda: values(*defaults), before)


async def test_configs_are_named_by_entity_type_and_name_too(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    at = ("--bootstrap-server", bootstrap)
    topics = (*at, "--entity-type", "topics")
    change = ("--add-config", "retention.ms=60000")
    altered = await said("configs", "alter", *topics, "--entity-name", topic, *change)
    assert altered == f"the configs of topic {topic} are altered"

    async def described(*arguments: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = await run_json("configs", "describe", *arguments)
        return rows

    async def of_topic() -> dict[str, str]:
        return {row["name"]: row["value"] for row in await described(*topics, "--entity-name", topic)}

    await becomes(of_topic, {"retention.ms": "60000"})
    assert await described(*topics, "--entity-name", topic) == await described(*at, "--topic", topic)
    of_all = [row for row in await described(*topics) if row["entity"] == f"topic {topic}"]
    assert [(row["name"], row["value"]) for row in of_all] == [("retention.ms", "60000")]

    brokers = (*at, "--entity-type", "brokers")
    assert await described(*brokers, "--entity-default") == await described(*at, "--broker-defaults")
    [broker] = (await run_json("cluster", "describe", *at))["brokers"]
    every = {row["entity"] for row in await described(*brokers, "--all")}
    assert f"broker {broker['broker']}" in every
    levels = (*at, "--entity-type", "broker-loggers", "--entity-name", str(broker["broker"]))
    assert await described(*levels, "--all") == await described(*at, "--broker-logger", str(broker["broker"]), "--all")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("describe --entity-name t", "--entity-type is missing: topics, brokers, broker-loggers, groups"),
        ("alter --entity-type topics --add-config a=b", "--entity-name is missing"),
        ("alter --entity-type brokers --add-config a=b", "--entity-name is missing, or --entity-default"),
        ("describe --entity-type topics --entity-default", "topics have no defaults of their own"),
        ("describe --entity-type brokers --entity-name one", "--entity-name: 'one' is not a whole number"),
        ("describe --entity-type topics --topic t", "not allowed with argument"),
        (
            "describe --entity-type users --entity-name emma",
            "`odradek users` has the passwords of users, and `odradek qu",
        ),
        ("alter --entity-type clients --entity-name c --add-config a=b", "`odradek quotas --client-id NAME` has the"),
        ("describe --entity-type ips", "ips have no configs: `odradek quotas --ip ADDRESS` has the quotas"),
        ("describe --entity-type emails", "invalid choice: 'emails' (choose from 'topics', 'brokers', "),
        ("describe", "name what has the configs: --topic, --broker, --group or --entity-type with --entity-name"),
    ],
)
async def test_an_incomplete_entity_is_refused(arguments: str, complaint: str) -> None:
    assert complaint in await said("configs", *arguments.split(), status=2)


async def test_an_unknown_broker_is_an_error_at_once(bootstrap: str) -> None:
    [broker] = (await run_json("cluster", "describe", "--bootstrap-server", bootstrap))["brokers"]
    message = f"the cluster has no broker 77 (it has {broker['broker']}). Check its id, and that it runs"
    for arguments in (
        ("configs", "describe", "--broker", "77"),
        ("configs", "describe", "--broker-logger", "77"),
        ("configs", "alter", "--broker", "77", "--add-config", "log.retention.ms=1"),
    ):
        assert message in await said(*arguments, "--bootstrap-server", bootstrap, status=1)


async def test_describing_a_resource_without_configs_prints_that_it_has_none(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    for arguments, resource in ((("--topic", topic), f"topic {topic}"), (("--group", "g"), "group g")):
        described = ("configs", "describe", "--bootstrap-server", bootstrap, *arguments)
        hint = "--all prints defaults and static configs too"
        assert await run(*described) == ([], f"no config is set for {resource}; {hint}\n")
        assert (await run(*described, "--json"))[0] == [b"[]"]


async def test_log_levels_of_a_running_broker(bootstrap: str) -> None:
    [broker] = (await run_json("cluster", "describe", "--bootstrap-server", bootstrap))["brokers"]
    its = ("--bootstrap-server", bootstrap, "--broker-logger", str(broker["broker"]))

    async def levels() -> dict[str, str]:
        return {row["name"]: row["value"] for row in await run_json("configs", "describe", *its)}

    before = await levels()
    name = next(name for name, level in before.items() if level != "DEBUG")

    async def its_level() -> str:
        return (await levels())[name]

    await run("configs", "alter", *its, "--add-config", f"{name}=DEBUG")
    await becomes(its_level, "DEBUG")
    await run("configs", "alter", *its, "--add-config", f"{name}={before[name]}")
    await becomes(its_level, before[name])


async def test_offsets_of_times_and_ends(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    async with Producer(bootstrap) as producer:
        for timestamp in (1000, 3000, 2000):
            await producer.send(topic, b"x", partition=0, timestamp=timestamp)

    async def found(*arguments: str) -> list[tuple[int, int | None, int | None]]:
        rows = await run_json("topics", "offsets", "--bootstrap-server", bootstrap, "--topic", topic, *arguments)
        return [(row["partition"], row["offset"], row["timestamp"]) for row in rows]

    assert await found() == [(0, 3, None), (1, 0, None)]
    assert await found("--time", "earliest", "--partition", "0") == [(0, 0, None)]
    assert await found("--time", "max-timestamp") == [(0, 1, 3000), (1, None, None)]
    assert await found("--time", "1970-01-01T00:00:01.001Z") == [(0, 1, 3000), (1, None, None)]
    assert await found("--time", "now", "--partition", "0") == [(0, None, None)]


async def test_the_cluster_and_what_its_brokers_serve(bootstrap: str) -> None:
    at = ("--bootstrap-server", bootstrap)
    cluster = await run_json("cluster", "describe", *at)
    [broker] = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller"] == broker["broker"]
    lines = (await said("cluster", "describe", *at)).splitlines()
    assert lines[0] == f"cluster {cluster['cluster_id']}  controller {cluster['controller']}"
    features = {row["feature"]: row for row in await run_json("cluster", "features", *at)}
    for row in features.values():
        assert row["level"] is None or row["level"] <= row["max_supported"]
    apis = {row["api"]: row for row in await run_json("cluster", "api-versions", *at)}
    assert apis["Fetch"] == {
        "broker": broker["broker"], "key": 1, "api": "Fetch",
        "min_version": 4, "max_version": 18, "our_min": 4, "our_max": 18, "used": 18,
    }  # fmt: skip


async def test_a_broker_alone_is_no_worker(bootstrap: str) -> None:
    at = ("--bootstrap-server", bootstrap)
    [described] = (await run_json("cluster", "describe", *at))["brokers"]

    [row] = await run_json("cluster", "brokers", *at)
    heading, line = (await said("cluster", "brokers", *at)).splitlines()

    assert row == described | {"worker": None, "workers": None, "error": None}
    assert heading.split() == ["BROKER", "HOST", "PORT", "RACK", "WORKER"]
    assert line.split() == [str(row["broker"]), row["host"], str(row["port"]), row["rack"] or "-", "-"]


async def test_partitions_in_log_directories(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    async with Producer(bootstrap) as producer:
        await producer.send(topic, b"x" * 1000, partition=1)

    async def lying() -> list[tuple[str, int, bool, int]]:
        rows = await run_json("cluster", "log-dirs", "--bootstrap-server", bootstrap, "--topic", topic)
        return [(row["topic"], row["partition"], row["bytes"] > 1000, row["offset_lag"]) for row in rows]

    await becomes(lying, [(topic, 0, False, 0), (topic, 1, True, 0)])


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics",),
        ("topics", "brew"),
        ("topics", "create"),
        ("topics", "create", "--topic", "t", "--partitions", "0"),
        ("topics", "create", "--topic", "t", "--config", "retention.ms"),
        ("topics", "create", "--topic", "t", "--replica-assignment", "1;2"),
        ("topics", "create", "--topic", "t", "--replica-assignment", "1,1", "--partitions", "2"),
        ("topics", "create", "--topic", "t", "--replica-assignment", "1,1", "--replication-factor", "1"),
        ("topics", "alter", "--topic", "t"),
        ("topics", "alter", "--topic", "t", "--config", "a=b", "--replica-assignment", "1,1"),
        ("topics", "delete-records", "--topic", "t"),
        ("configs", "describe"),
        ("configs", "describe", "--topic", "t", "--broker", "1"),
        ("configs", "alter", "--topic", "t"),
        ("configs", "alter", "--topic", "t", "--add-config", "retention.ms"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        cli.run(arguments)
    assert exit_info.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"python -m client {arguments[0]}")
    assert err.count("\n") == 1


def test_tables_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"topic": "a", "lag": 12, "members": ("x", "y"), "stable": True, "share": 1.5},
        {"topic": "long name", "lag": None, "members": (), "stable": False, "share": 22.0},
    ]
    columns = ("topic", "lag", "members", "stable", "share")
    print_rows(columns, rows, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "TOPIC      LAG  MEMBERS  STABLE  SHARE",
        "a           12  x,y      yes      1.50",
        "long name    -  -        no      22.00",
    ]
    print_rows(columns, rows, as_json=True)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(rows))
    print_rows(columns, [], as_json=True)
    assert capsys.readouterr().out == "[]\n"
    print_rows(columns, [], as_json=False)
    assert capsys.readouterr().out == ""
