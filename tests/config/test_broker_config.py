from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig, ConfigError, Endpoint


def _file(directory: Path, text: str) -> Path:
    path = directory / "server.properties"
    path.write_text(text)
    return path


def _problems(path: Path | None = None, **overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(path, {name.replace("_", "."): text for name, text in overrides.items()})
    return caught.value.problems


def test_without_a_file_all_properties_have_their_defaults() -> None:
    config = BrokerConfig.load()

    assert config.node_id == 1
    assert config.listeners == [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
    assert config.advertised_listeners is None
    assert config.log_dirs == ["/tmp/kafka-logs"]
    assert config.log_retention_ms == 7 * 24 * 3600 * 1000
    assert config.log_flush_interval_ms == 2**63 - 1
    assert config.metrics_port == -1
    assert (config.declared, config.warnings) == ({}, ())


def test_overrides_replace_entries_of_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "num.partitions=3\nlog.segment.bytes : 5000\n")

    config = BrokerConfig.load(path, {"num.partitions": "4"})

    assert (config.num_partitions, config.log_segment_bytes) == (4, 5000)
    assert config.declared == {"num.partitions": "4", "log.segment.bytes": "5000"}


def test_a_configuration_is_immutable() -> None:
    config = BrokerConfig.load()

    with pytest.raises(AttributeError):
        config.num_partitions = 5


def test_an_unknown_name_is_an_error_with_the_nearest_match(tmp_path: Path) -> None:
    path = _file(tmp_path, "\nlog.segmet.bytes=5\n")

    assert _problems(path) == [f"unknown property log.segmet.bytes ({path}, line 2): did you mean log.segment.bytes?"]
    assert _problems(zzzzzz="1") == ["unknown property zzzzzz (override)"]


def test_the_name_of_a_topic_property_is_an_error_with_the_broker_wide_name() -> None:
    assert _problems(retention_ms="5") == [
        "unknown property retention.ms (override): a topic has it; for all topics it is log.retention.ms"
    ]


def test_a_name_that_is_set_twice_is_an_error_with_both_lines(tmp_path: Path) -> None:
    path = _file(tmp_path, "num.partitions=1\n# x\nnum.partitions=2\n")

    assert _problems(path) == [f"num.partitions is set twice: {path}, lines 1 and 3"]


def test_an_invalid_value_is_an_error_with_name_value_line_and_bound(tmp_path: Path) -> None:
    path = _file(tmp_path, "num.partitions=0\nlog.segment.bytes=1e9\n")

    not_a_number = "Not a number of type INT; write a number of bytes, such as 1048576"
    assert _problems(path) == [
        f"num.partitions = '0' ({path}, line 1): Value must be at least 1",
        f"log.segment.bytes = '1e9' ({path}, line 2): {not_a_number}",
    ]


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    path = _file(tmp_path, "nonsense.at.all=1\nnum.partitions=x\nnode.id=1\nnode.id=2\n")

    assert len(_problems(path)) == 3


def test_a_property_without_effect_loads_with_a_warning_and_the_reason(tmp_path: Path) -> None:
    path = _file(tmp_path, "zookeeper.connect=localhost\nssl.protocol=TLSv1.2\n")

    assert BrokerConfig.load(path).warnings == (
        f"zookeeper.connect ({path}, line 1) has no effect: Kafka removed it in 4.0 or before",
        f"ssl.protocol ({path}, line 2) has no effect: OpenSSL does the work of Java's TLS providers",
    )


def test_a_missing_or_malformed_file_is_an_error(tmp_path: Path) -> None:
    assert "No such file" in _problems(tmp_path / "nowhere")[0]
    assert "line 1" in _problems(_file(tmp_path, "a=\\u1"))[0]


@pytest.mark.parametrize(
    ("settings", "milliseconds"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-7"}, -1),
    ],
)
def test_milliseconds_take_precedence_over_minutes_over_hours(settings: dict[str, str], milliseconds: int) -> None:
    assert BrokerConfig.load(None, settings).log_retention_ms == milliseconds


def test_the_older_name_of_the_node_id_sets_both() -> None:
    config = BrokerConfig.load(None, {"broker.id": "7"})

    assert (config.node_id, config.broker_id) == (7, 7)
    assert config.declared == {"node.id": "7", "broker.id": "7"}
    assert _problems(broker_id="-1") == ["broker.id = -1: Value must be at least 0"]


def test_the_two_names_of_the_node_id_must_agree() -> None:
    assert _problems(node_id="1", broker_id="2") == ["node.id is 1 and broker.id is 2: they are two names of one id"]


def test_the_older_name_of_the_log_directories_is_used_if_the_new_one_is_unset() -> None:
    assert BrokerConfig.load(None, {"log.dir": "/a"}).log_dirs == ["/a"]
    assert BrokerConfig.load(None, {"log.dirs": "/a, /b,/a"}).log_dirs == ["/a", "/b"]
    assert BrokerConfig.load(None, {"log.dir": "/a", "log.dirs": "/b"}).log_dirs == ["/b"]


def test_the_controllers_listeners_of_a_kraft_file_are_skipped(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        "process.roles=broker,controller\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        "controller.listener.names=CONTROLLER\nadvertised.listeners=PLAINTEXT://a:9092,CONTROLLER://a:9093\n",
    )

    config = BrokerConfig.load(path)

    assert config.listeners == [Endpoint("PLAINTEXT", "", 9092)]
    assert config.advertised_listeners == [Endpoint("PLAINTEXT", "a", 9092)]


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"listeners": "SSL://:9093"}, "the listener SSL needs a certificate"),
        ({"listeners": "MINE://:9093"}, "no protocol in listener.security.protocol.map"),
        ({"listeners": ""}, "names no listener"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "used twice"),
        ({"listeners": "PLAINTEXT://a:1,B://a:1", "listener.security.protocol.map": "B:PLAINTEXT,PLAINTEXT:PLAINTEXT"},
         "the address of another"),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "is not NAME:protocol"),
        ({"advertised.listeners": "OTHER://a:1"}, "none of the listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "not an address that a client can connect to"),
        ({"advertised.listeners": "PLAINTEXT://a:0"}, "has no port"),
        ({"log.dirs": ""}, "names no directory"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms"),
        ({"log.flush.interval.ms": "-1"}, "log.flush.interval.ms"),
        ({"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"}, "exceeds"),
        ({"max.connections.per.ip.overrides": "host"}, "not of the form host:count"),
        ({"metrics.static.labels": "a b=c"}, "not of the form name=value"),
        ({"authorizer.class.name": "kafka.security.Authorizer"}, "String must be one of"),
        ({"group.consumer.session.timeout.ms": "44999"}, "must be greater than or equal to group.consumer.min.session"),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "must be less than or equal to group.consumer.max.heartbe"),
        ({"group.consumer.min.assignment.interval.ms": "15001"}, "max.assignment.interval.ms must be greater than or"),
        ({"group.consumer.min.session.timeout.ms": "1", "group.consumer.session.timeout.ms": "5000"}, "must be less"),
        ({"group.consumer.assignors": ""}, "names no assignor"),
        ({"transaction.two.phase.commit.enable": "true"}, "must be false, because the two-phase commit"),
        ({"group.consumer.assignors": "uniform,org.example.Mine"}, "neither uniform nor range"),
        ({"group.consumer.migration.policy": "sideways"}, "String must be one of (case insensitive): DISABLED"),
    ],
)  # fmt: skip
def test_rules_between_properties(settings: dict[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(part)):
        BrokerConfig.load(None, settings)


def test_a_listener_may_have_any_name() -> None:
    config = BrokerConfig.load(
        None,
        {
            "listeners": "inside://:1,OUTSIDE://:2",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,outside:plaintext",
        },
    )

    assert [endpoint.name for endpoint in config.listeners] == ["INSIDE", "OUTSIDE"]
    assert config.security_protocol("OUTSIDE") == "PLAINTEXT"


def test_run_time_properties_create_another_configuration() -> None:
    config = BrokerConfig.load(None, {"log.segment.bytes": "1000", "log.retention.minutes": "5"})

    altered = config.altered({"log.segment.bytes": "2000", "log.retention.ms": "7", "num.partitions": "9"})

    assert (altered.log_segment_bytes, altered.log_retention_ms) == (2000, 7)
    assert altered.num_partitions == config.num_partitions  # it only changes with a restart
    assert (config.log_segment_bytes, config.log_retention_ms) == (1000, 300_000)
    assert altered.declared == config.declared
    assert altered.warnings == ()


def test_run_time_properties_of_another_version_are_skipped() -> None:
    config = BrokerConfig.load()

    altered = config.altered({"log.segment.bytes": "one", "of.the.future": "1", "log.roll.ms": "9"})

    assert altered.log_segment_bytes == config.log_segment_bytes
    assert altered.log_roll_ms == 9
    [warning] = altered.warnings
    assert "log.segment.bytes" in warning


def test_a_property_without_effect_is_stored_with_a_warning() -> None:
    config = BrokerConfig.load(None, {"num.io.threads": "16", "background.threads": "10"})

    assert config.declared == {"num.io.threads": "16", "background.threads": "10"}
    assert config.warnings == (
        "num.io.threads (override) has no effect: an event loop replaces these threads",
        "background.threads (override) has no effect: an event loop replaces these threads",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.io.threads", "many"),
        ("num.io.threads", "0"),
        ("process.roles", "observer"),
        ("sasl.kerberos.ticket.renew.jitter", "perhaps"),
        ("sasl.oauthbearer.assertion.algorithm", "none"),
        ("controller.quorum.voters", ""),
    ],
)
def test_an_invalid_value_of_a_property_without_effect_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig.load(None, {name: value})


def test_a_run_time_property_without_effect_adds_a_warning() -> None:
    altered = BrokerConfig.load().altered({"num.io.threads": "16"})

    assert altered.warnings == ("num.io.threads (set at run time) has no effect: an event loop replaces these threads",)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"endpoints": "etcd-1"}, "'etcd-1' is not of the form host:port"),
        ({"endpoints": "http://etcd-1:2379"}, "is not of the form host:port"),
        ({"endpoints": "etcd-1:2379,etcd-2:0"}, "'etcd-2:0' is not of the form host:port"),
        ({"endpoints": "etcd-1:65536"}, "is not of the form host:port"),
        ({"namespace": ""}, r"metadata\.etcd\.namespace = ''"),
        ({"namespace": "/a"}, "single slashes"),
        ({"namespace": "a//b"}, "single slashes"),
        ({"timeout.ms": "9"}, "at least 10"),
        ({"password": "p"}, r"password is set, so metadata\.etcd\.username must be set too"),
        ({"username": "u"}, r"username is set, so metadata\.etcd\.password must be set too"),
        ({"certificate.file": "c"}, r"certificate\.file is set, so metadata\.etcd\.key\.file must be set too"),
        ({"key.file": "k"}, r"key\.file is set, so metadata\.etcd\.certificate\.file must be set too"),
    ],
)
def test_a_wrong_property_of_etcd_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.load(None, {f"metadata.etcd.{name}": text for name, text in properties.items()})


def test_one_of_several_brokers_has_a_node_id_of_its_own() -> None:
    etcd = {"metadata.etcd.endpoints": "etcd-1:2379, etcd-2:2379,[::1]:2379"}

    with pytest.raises(ConfigError, match=r"set node\.id too"):
        BrokerConfig.load(None, etcd)
    for name in ("node.id", "broker.id"):
        config = BrokerConfig.load(None, etcd | {name: "3"})
        assert config.metadata_etcd_endpoints == ["etcd-1:2379", "etcd-2:2379", "[::1]:2379"]


CLUSTER = {"metadata.etcd.endpoints": "etcd-1:2379", "node.id": "1", "listeners": "PLAINTEXT://broker-1:9092"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, r"advertised\.listeners: set it, because other brokers cannot connect"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, r"cannot connect to PLAINTEXT://0\.0\.0\.0:9092"),
        (
            {"inter.broker.listener.name": "OTHER"},
            r"listener\.name: OTHER is none of the listeners PLAINTEXT",
        ),
        ({"replica.fetch.wait.max.ms": "40000"}, r"is at most replica\.lag\.time\.max\.ms, which is 30000"),
        ({"broker.session.timeout.ms": "1999"}, r"session\.timeout\.ms = 1999: in a cluster it is at least 2000"),
    ],
)
def test_a_member_of_a_cluster_has_rules_that_a_broker_alone_has_not(properties: dict[str, str], message: str) -> None:
    BrokerConfig.load(None, properties)
    BrokerConfig.load(None, CLUSTER)
    BrokerConfig.load(None, CLUSTER | {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://b:9092"})

    with pytest.raises(ConfigError, match=message):
        BrokerConfig.load(None, CLUSTER | properties)
