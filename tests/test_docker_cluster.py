"""The parts of docker/cluster.yaml agree with each other, as far as that shows without a container engine."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from odradek.broker.config import BrokerConfig
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.run import DRAIN_SECONDS
from tests.peers import etcd

REPOSITORY = Path(__file__).resolve().parents[1]
DOCKER = REPOSITORY / "docker"
BROKERS = ("broker-1", "broker-2", "broker-3")
MEMBERS = ("etcd-1", "etcd-2", "etcd-3")


def load(name: str) -> Any:
    return yaml.safe_load((DOCKER / name).read_text())


def services() -> dict[str, Any]:
    services: dict[str, Any] = load("cluster.yaml")["services"]
    return services


def config_of(broker: str) -> BrokerConfig:
    """The configuration that a broker's command line makes. Raises ConfigError for a property that does not exist."""
    service = services()[broker]
    odradek, command, *arguments = [*service["entrypoint"], *service["command"]]
    assert (odradek, command) == ("odradek", "broker")
    assert all(argument.startswith("--") for argument in arguments)
    options = [argument.removeprefix("--").split("=", 1) for argument in arguments]
    [path] = [value for name, value in options if name == "config"]
    pairs = [value.split("=", 1) for name, value in options if name == "override"]
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), "a property is overridden twice"
    assert len(options) == len(pairs) + 1
    return BrokerConfig.load(mounted(broker, path), dict(pairs))


def mounted(service: str, path: str) -> Path:
    """The file of this project that a service has at `path`."""
    [source] = [each.split(":")[0] for each in services()[service]["volumes"] if each.split(":")[1] == path]
    return (DOCKER / source).resolve()


def published(broker: str) -> dict[int, int]:
    """The ports of this machine by those of the container."""
    ports = [each.split(":") for each in services()[broker]["ports"]]
    return {int(container): int(host) for _, host, container in ports}


def advertised(config: BrokerConfig) -> list[Endpoint]:
    assert config.advertised_listeners is not None
    return config.advertised_listeners


@pytest.fixture(scope="module")
def configs() -> dict[str, BrokerConfig]:
    return {broker: config_of(broker) for broker in BROKERS}


def test_every_property_of_the_brokers_exists_and_has_an_effect(configs: dict[str, BrokerConfig]) -> None:
    for config in configs.values():
        assert config.warnings == ()


def test_brokers_use_the_cluster_s_properties() -> None:
    for broker in BROKERS:
        assert mounted(broker, "/etc/odradek/cluster.properties") == REPOSITORY / "config" / "cluster.properties"


def test_brokers_differ_in_id_and_rack_alone(configs: dict[str, BrokerConfig]) -> None:
    assert [config.node_id for config in configs.values()] == [1, 2, 3]
    assert len({config.broker_rack for config in configs.values()}) == len(BROKERS)
    own = {"node.id", "broker.id", "broker.rack", "advertised.listeners"}
    common = [{name: text for name, text in each.declared.items() if name not in own} for each in configs.values()]
    assert common[0] == common[1] == common[2]


def test_brokers_and_containers_reach_a_broker_under_the_name_of_its_service(configs: dict[str, BrokerConfig]) -> None:
    for broker, config in configs.items():
        internal = next(each for each in advertised(config) if each.name == config.inter_broker_listener_name)
        bound = next(each for each in config.listeners if each.name == internal.name)
        assert (internal.host, internal.port) == (broker, bound.port)


def test_programs_on_this_machine_reach_a_broker_at_its_published_port(configs: dict[str, BrokerConfig]) -> None:
    for broker, config in configs.items():
        external = next(each for each in advertised(config) if each.name != config.inter_broker_listener_name)
        bound = next(each for each in config.listeners if each.name == external.name)
        assert external.host == "localhost"
        assert published(broker) == {bound.port: external.port}


def test_brokers_know_the_members_of_etcd(configs: dict[str, BrokerConfig]) -> None:
    for config in configs.values():
        assert config.metadata_etcd_endpoints == [f"{member}:2379" for member in MEMBERS]


def test_members_of_etcd_know_each_other_and_themselves() -> None:
    for member in MEMBERS:
        environment = services()[member]["environment"]
        peers = dict(each.split("=", 1) for each in environment["ETCD_INITIAL_CLUSTER"].split(","))
        assert environment["ETCD_NAME"] == member
        assert tuple(peers) == MEMBERS
        assert peers[member] == environment["ETCD_INITIAL_ADVERTISE_PEER_URLS"] == f"http://{member}:2380"
        assert environment["ETCD_ADVERTISE_CLIENT_URLS"] == f"http://{member}:2379"
        for name, port in (("CLIENT", 2379), ("PEER", 2380), ("METRICS", 2381)):
            assert environment[f"ETCD_LISTEN_{name}_URLS"] == f"http://0.0.0.0:{port}"


def test_etcd_is_compacted_and_limited() -> None:
    for member in MEMBERS:
        environment = services()[member]["environment"]
        assert (environment["ETCD_AUTO_COMPACTION_MODE"], environment["ETCD_AUTO_COMPACTION_RETENTION"]) == (
            "periodic", "1h",
        )  # fmt: skip
        assert int(environment["ETCD_QUOTA_BACKEND_BYTES"]) == 2 << 30


def test_etcd_is_built_as_for_the_tests_and_its_health_is_checked() -> None:
    dockerfile = (DOCKER / "etcd" / "Dockerfile").read_text()
    assert f"ARG VERSION={etcd.VERSION}\n" in dockerfile
    for member in MEMBERS:
        service = services()[member]
        assert service["build"] == {"context": "etcd", "args": {"VERSION": etcd.VERSION}}
        assert service["image"] == f"odradek-etcd:{etcd.VERSION}"
        assert f"VOLUME {service['environment']['ETCD_DATA_DIR']}\n" in dockerfile
        metrics_port = service["environment"]["ETCD_LISTEN_METRICS_URLS"].rpartition(":")[2]
        assert f"/dev/tcp/127.0.0.1/{metrics_port} " in dockerfile
    [check] = re.findall(r"HEALTHCHECK .*\\\n\s+CMD (\[.*\])\n", dockerfile)
    assert json.loads(check)[:2] == ["bash", "-c"]


@pytest.mark.process
@pytest.mark.timeout(600)
def test_the_health_check_of_etcd_tells_a_healthy_member_from_one_that_is_not_there() -> None:
    [check] = re.findall(r"HEALTHCHECK .*\\\n\s+CMD (\[.*\])\n", (DOCKER / "etcd" / "Dockerfile").read_text())
    *command, script = json.loads(check)
    with etcd.running(1) as members:
        port = members.members[0].metrics_port
        script = script.replace("/2381", f"/{port}")
        assert subprocess.run([*command, script], check=False, timeout=30).returncode == 0
    assert subprocess.run([*command, script], check=False, timeout=30, capture_output=True).returncode != 0


def test_the_image_of_the_brokers_has_the_client_of_etcd() -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    assert "ARG PACKAGE=.\n" in dockerfile
    assert 'install --no-cache-dir "$PACKAGE"' in dockerfile
    for broker in BROKERS:
        assert services()[broker]["build"]["args"] == {"PACKAGE": ".[cluster]"}


def test_a_stopping_broker_has_time_to_leave_its_partitions() -> None:
    for broker in BROKERS:
        assert int(services()[broker]["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS


def test_ports_are_unique_and_on_loopback() -> None:
    ports = [port for service in services().values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert max(Counter(port.split(":")[1] for port in ports).values()) == 1


def test_no_two_services_share_a_volume_and_every_file_exists() -> None:
    volumes = [each.split(":")[0] for service in services().values() for each in service.get("volumes", ())]
    named = [each for each in volumes if not each.startswith(".")]
    assert sorted(named) == sorted(load("cluster.yaml")["volumes"])
    for each in volumes:
        assert not each.startswith(".") or (DOCKER / each).exists(), each


def test_services_depend_on_services() -> None:
    for service in services().values():
        assert set(service.get("depends_on", ())) <= services().keys()


def test_prometheus_scrapes_all_brokers_and_members(configs: dict[str, BrokerConfig]) -> None:
    assert mounted("prometheus", "/etc/prometheus/prometheus.yml") == DOCKER / "prometheus" / "cluster.yml"
    jobs = {job["job_name"]: job["static_configs"] for job in load("prometheus/cluster.yml")["scrape_configs"]}
    assert [each["targets"] for each in jobs["odradek"]] == [
        [f"{broker}:{config.metrics_port}"] for broker, config in configs.items()
    ]
    assert jobs["etcd"] == [{"targets": [f"{member}:2381" for member in MEMBERS]}]
    assert len({each["labels"]["kubernetes_pod_name"] for each in jobs["odradek"]}) == len(BROKERS)


@pytest.mark.parametrize("compose", ["compose.yaml", "cluster.yaml"])
def test_prometheus_has_the_alerts(compose: str) -> None:
    mounts = dict(each.split(":")[:2] for each in load(compose)["services"]["prometheus"]["volumes"])
    [configuration] = [name for name, path in mounts.items() if path == "/etc/prometheus/prometheus.yml"]
    assert load(configuration)["rule_files"] == ["alerts.yml"]
    assert mounts["./prometheus/alerts.yml"] == "/etc/prometheus/alerts.yml"


def alerts() -> list[Any]:
    [group] = load("prometheus/alerts.yml")["groups"]
    rules: list[Any] = group["rules"]
    return rules


def test_every_series_of_an_alert_is_exported() -> None:
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    for rule in alerts():
        names = set(re.findall(r"\b(?:kafka|odradek)_\w+", rule["expr"]))
        assert names or rule["expr"].startswith("up{"), rule["alert"]
        assert all(f"| `{name}`" in page for name in names), rule["alert"]


def test_an_alert_has_a_severity_and_names_only_labels_that_it_keeps() -> None:
    assert len({rule["alert"] for rule in alerts()}) == len(alerts())
    for rule in alerts():
        assert rule["labels"]["severity"] in ("warning", "critical")
        kept = re.match(r"(?:sum|max|min) by \(([^)]*)\)", rule["expr"])
        named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert named <= (set(kept[1].split(", ")) if kept else {"instance", "job"}), rule["alert"]


@pytest.mark.parametrize(
    ("alert", "series"),
    [
        ("LogDirectoryFilling", {"odradek_log_directory_free_bytes", "odradek_log_directory_size_bytes"}),
        ("LogDirectoryFull", {"odradek_log_directory_free_bytes", "odradek_log_directory_size_bytes"}),
        ("ConsumerLag", {"kafka_topic_partition_current_offset", "kafka_consumergroup_current_offset"}),
        ("CertificateExpires", {"odradek_tls_certificate_expiry_timestamp_seconds"}),
        ("CertificateExpiresNow", {"odradek_tls_certificate_expiry_timestamp_seconds"}),
        (
            "FailedLogins",
            {
                "kafka_server_socket_server_metrics_failed_authentication_total",
                "kafka_server_socket_server_metrics_failed_reauthentication_total",
            },
        ),
        ("EtcdFilling", {"odradek_metadata_store_size_bytes", "odradek_metadata_store_quota_bytes"}),
        ("EtcdFull", {"odradek_metadata_store_full_total"}),
    ],
)
def test_what_an_operator_must_hear_of_has_an_alert(alert: str, series: set[str]) -> None:
    [rule] = [rule for rule in alerts() if rule["alert"] == alert]
    assert set(re.findall(r"\b(?:kafka|odradek)_\w+", rule["expr"])) == series
