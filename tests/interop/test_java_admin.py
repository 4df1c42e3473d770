"""Kafka's own admin tools: their changes take effect, and they print the same as for Apache Kafka."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from tests.peers import java
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server

pytestmark = pytest.mark.java

MakeTopic = Callable[..., str]


@pytest.fixture
def run(bootstrap: str) -> Callable[..., str]:
    def run(tool: str, *arguments: str, check: bool = True) -> str:
        done = java.run(tool, "--bootstrap-server", bootstrap, *arguments, check=check)
        return done.stdout if check else done.stdout + done.stderr

    return run


def write_json(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def test_the_topic_tool_adds_partitions_and_describes_by_id(
    run: Callable[..., str], admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()

    run(java.TOPIC_COMMAND, "--alter", "--topic", topic, "--partitions", "3")
    topic_id = str(admin.describe_topics(TopicCollection([topic]))[topic].result(30).topic_id)
    topic_id = topic_id.replace("+", "-").replace("/", "_")  # librdkafka has another base64 for it than Kafka
    described = run(java.TOPIC_COMMAND, "--describe", "--topic-id", topic_id)

    assert f"TopicId: {topic_id}\tPartitionCount: 3" in described
    assert re.findall(r"Partition: (\d)\tLeader: 1\tReplicas: 1\tIsr: 1", described) == ["0", "1", "2"]


def test_the_config_tool_changes_topics(run: Callable[..., str], topic: str) -> None:
    named = ("--entity-type", "topics", "--entity-name", topic)

    added = "retention.ms=5000,cleanup.policy=[compact,delete]"
    assert run(java.CONFIG_COMMAND, "--alter", *named, "--add-config", added) == (
        f"Completed updating config for topic {topic}.\n"
    )
    described = run(java.CONFIG_COMMAND, "--describe", *named)
    refused = run(
        java.CONFIG_COMMAND,
        *("--alter", *named, "--delete-config", "cleanup.policy", "--add-config", "retention.ms=soon"),
        check=False,
    )

    assert f"Dynamic configs for topic {topic} are:\n" in described
    assert "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:" in described
    assert "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000, " in described
    assert "InvalidConfigurationException" in refused


def test_the_config_tool_changes_brokers(run: Callable[..., str]) -> None:
    this, default = ("--entity-name", "1"), ("--entity-default",)

    def alter(which: tuple[str, ...], *change: str) -> str:
        return run(java.CONFIG_COMMAND, "--alter", "--entity-type", "brokers", *which, *change)

    assert alter(this, "--add-config", "log.retention.bytes=123456") == "Completed updating config for broker 1.\n"
    alter(default, "--add-config", "log.retention.bytes=654321")
    described = run(java.CONFIG_COMMAND, "--describe", "--entity-type", "brokers")
    for which in (this, default):
        alter(which, "--delete-config", "log.retention.bytes")

    assert (
        "  log.retention.bytes=123456 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.bytes=123456, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.bytes=654321, DEFAULT_CONFIG:log.retention.bytes=-1}"
    ) in described
    assert "Default configs for brokers in the cluster are:\n" in described
    assert "  log.retention.bytes=654321 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:" in described


def test_the_config_tool_changes_loggers(run: Callable[..., str]) -> None:
    named = ("--entity-type", "broker-loggers", "--entity-name", "1")

    run(java.CONFIG_COMMAND, "--alter", *named, "--add-config", "root=INFO")
    described = run(java.CONFIG_COMMAND, "--describe", *named)

    assert "Dynamic configs for broker-logger 1 are:\n" in described
    assert "  root=INFO sensitive=false synonyms={}\n" in described


def test_the_config_tool_changes_groups(run: Callable[..., str], topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    named = ("--entity-type", "groups", "--entity-name", group)

    changed = run(java.CONFIG_COMMAND, "--alter", *named, "--add-config", "consumer.session.timeout.ms=50000")
    described = run(java.CONFIG_COMMAND, "--describe", "--entity-type", "groups")
    refused = run(java.CONFIG_COMMAND, "--alter", *named, "--add-config", "consumer.session.timeout.ms=1", check=False)

    assert changed == f"Completed updating config for group {group}.\n"
    assert f"Dynamic configs for group {group} are:\n" in described
    assert (
        "  consumer.session.timeout.ms=50000 sensitive=false synonyms={"
        "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, "
        "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}"
    ) in described
    assert "InvalidConfigurationException" in refused


def test_records_are_deleted_and_offsets_and_sizes_shown(
    run: Callable[..., str], bootstrap: str, server: Server, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    Confluent().produce(bootstrap, topic, [Outgoing(None, b"v")] * 10)
    wanted = {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": 0, "offset": 7},
            {"topic": topic, "partition": 1, "offset": -1},
        ],
    }

    deleted = run(java.DELETE_RECORDS_COMMAND, "--offset-json-file", write_json(tmp_path / "offsets", wanted))
    earliest = run(java.GET_OFFSET_SHELL, "--topic", topic, "--time", "earliest")
    described = run(java.LOG_DIRS_COMMAND, "--describe", "--topic-list", topic)

    assert f"partition: {topic}-0\tlow_watermark: 7\n" in deleted
    assert f"partition: {topic}-1\tlow_watermark: 0\n" in deleted
    assert earliest.splitlines() == [f"{topic}:0:7", f"{topic}:1:0"]
    [broker] = json.loads(described.splitlines()[-1])["brokers"]
    [log_dir] = broker["logDirs"]
    assert (broker["broker"], log_dir["error"], log_dir["logDir"]) == (1, None, str(server.log_dir))
    rows = {row["partition"]: (row["size"] > 0, row["offsetLag"], row["isFuture"]) for row in log_dir["partitions"]}
    assert rows == {f"{topic}-0": (True, 0, False), f"{topic}-1": (False, 0, False)}


def test_there_is_nothing_to_elect_or_to_reassign(run: Callable[..., str], topic: str, tmp_path: Path) -> None:
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1]}]}

    elected = run(java.LEADER_ELECTION_COMMAND, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    listed = run(java.REASSIGN_PARTITIONS_COMMAND, "--list")
    stays = run(
        java.REASSIGN_PARTITIONS_COMMAND, "--execute", "--reassignment-json-file", write_json(tmp_path / "a", plan)
    )

    assert elected == f"Valid replica already elected for partitions {topic}-0\n"
    assert listed == "No partition reassignments found.\n"
    assert f"Successfully started partition reassignment for {topic}-0" in stays


def test_the_config_tool_manages_scram_users(run: Callable[..., str]) -> None:
    alice = ("--entity-type", "users", "--entity-name", "alice")
    users = ("--describe", "--entity-type", "users")

    assert run(
        java.CONFIG_COMMAND, "--alter", *alice, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=alice-secret]"
    ) == ("Completed updating config for user alice.\n")
    run(java.CONFIG_COMMAND, "--alter", *alice, "--add-config", "SCRAM-SHA-512=[password=alice-secret]")
    described = run(java.CONFIG_COMMAND, *users)
    assert "SCRAM credential configs for user-principal 'alice' are " in described
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described

    refused = run(
        java.CONFIG_COMMAND, "--alter", *alice, "--add-config", "SCRAM-SHA-512=[iterations=1,password=x]", check=False
    )
    assert "4096" in refused  # the tool itself refuses it
    run(java.CONFIG_COMMAND, "--alter", *alice, "--delete-config", "SCRAM-SHA-256")
    run(java.CONFIG_COMMAND, "--alter", *alice, "--delete-config", "SCRAM-SHA-512")
    assert "alice" not in run(java.CONFIG_COMMAND, *users)
