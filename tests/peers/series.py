"""The metrics of a server, with the names of Strimzi's rules: scraped from ours, read through JMX from Apache Kafka."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from tests.peers import java
from tests.peers.server import Server

Samples = dict[str, list[tuple[dict[str, str], float]]]

# The beans that count events; a scrape of ours has many more series.
_BEANS = ("kafka.server:type=BrokerTopicMetrics,*", "kafka.network:type=RequestMetrics,name=ErrorsPerSec,*")
_BEAN = re.compile(r"kafka\.(\w+):type=(\w+),name=(\w+)PerSec((?:,\w+=[^,]*)*):Count=(\d+)\Z")


def read(server: Server) -> Samples:
    """All series; for Apache Kafka only the counters of topics and errors."""
    samples: Samples = {}
    for name, labels, value in _scraped(server) if server.jmx_port is None else _counted(server):
        samples.setdefault(name, []).append((labels, value))
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    """The single series with this name and these labels; without labels the one that has none."""
    found = [number for own, number in samples.get(name, ()) if (labels.items() <= own.items() if labels else not own)]
    assert len(found) <= 1, (name, labels)
    return found[0] if found else 0  # Kafka has a series only after the first count


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()


def _scraped(server: Server) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in text_string_to_metric_families(get(f"http://{server.host}:{server.metrics_port}/metrics")[1]):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _counted(server: Server) -> Iterator[tuple[str, dict[str, str], float]]:
    """The name of a PerSec bean by the rule `kafka_$1_$2_$3_total`."""
    url = f"service:jmx:rmi:///jndi/rmi://{server.host}:{server.jmx_port}/jmxrmi"
    names = [argument for bean in _BEANS for argument in ("--object-name", bean)]
    options = ["--attributes", "Count", "--one-time", "--report-format", "properties"]
    for line in java.run(java.JMX_TOOL, "--jmx-url", url, *names, *options).stdout.splitlines():
        bean = _BEAN.match(line)
        if bean is not None:
            labels = dict(pair.split("=") for pair in bean[4].split(",")[1:])
            yield f"kafka_{bean[1]}_{bean[2]}_{bean[3]}_total".lower(), labels, float(bean[5])
