"""What Prometheus scrapes is what the dashboard shows, and counts what clients did."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server

DASHBOARD = Path(__file__).parents[2] / "docker" / "grafana" / "dashboards" / "odradek.json"

Samples = dict[str, list[tuple[dict[str, str], float]]]


@pytest.fixture
def endpoint(server: Server) -> str:
    if server.metrics_port is None:
        pytest.skip("Apache Kafka needs a Java agent to be scraped")
    return f"http://{server.host}:{server.metrics_port}"


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()


def scrape(endpoint: str) -> Samples:
    samples: Samples = {}
    for family in text_string_to_metric_families(get(f"{endpoint}/metrics")[1]):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    [found] = [number for own, number in samples[name] if labels.items() <= own.items()]
    return found


def names_in_dashboard() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield from re.findall(r"\b(?:kafka|process)_[a-z_]+", target["expr"])


def test_every_series_of_the_dashboard_is_exported(endpoint: str, server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v")])
    Confluent().consume(server.bootstrap, topic, count=1)
    exported = scrape(endpoint)
    assert set(names_in_dashboard()) - set(exported) == set()


def test_traffic_is_counted_by_topic(endpoint: str, server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v" * 100)] * 50)
    Confluent().consume(server.bootstrap, topic, count=50)
    samples = scrape(endpoint)
    assert value(samples, "kafka_server_brokertopicmetrics_messagesin_total", topic=topic) == 50
    assert value(samples, "kafka_server_brokertopicmetrics_bytesin_total", topic=topic) > 5_000
    assert value(samples, "kafka_server_brokertopicmetrics_bytesout_total", topic=topic) > 5_000
    assert value(samples, "kafka_log_log_logendoffset", topic=topic, partition="0") == 50
    assert value(samples, "kafka_log_log_size", topic=topic, partition="0") > 5_000
    assert value(samples, "kafka_log_log_numlogsegments", topic=topic, partition="0") == 1
    assert value(samples, "kafka_controller_kafkacontroller_activecontrollercount") == 1


@pytest.mark.parametrize("path", ["healthz", "readyz"])
def test_a_serving_broker_is_healthy_and_ready(endpoint: str, path: str) -> None:
    assert get(f"{endpoint}/{path}")[0] == 200
