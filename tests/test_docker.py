"""The files of docker/ are sound and agree with each other, as far as that shows without a container engine."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from odradek.broker.config import BrokerConfig

REPOSITORY = Path(__file__).resolve().parents[1]
DOCKER = REPOSITORY / "docker"

INSTRUCTIONS = {
    *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "ONBUILD", "RUN"),
    *("SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (DOCKER / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(name, arguments) for name, _, arguments in (line.partition(" ") for line in lines if line)]


def arguments_of(instruction: str) -> list[str]:
    return [arguments for name, arguments in instructions() if name == instruction]


def load(name: str) -> Any:
    return yaml.safe_load((DOCKER / name).read_text())


def test_the_dockerfile_has_only_known_instructions() -> None:
    assert {name for name, _ in instructions()} <= INSTRUCTIONS
    assert instructions()[0][0] == "FROM"


def test_base_images_are_slim_and_of_a_chosen_release() -> None:
    images = [arguments.split()[0] for arguments in arguments_of("FROM")]
    assert len(set(images)) == 1, "what is built with one Python runs on the same"
    assert re.fullmatch(r"python:3\.11-slim-\w+", images[0])


def test_the_image_does_not_run_as_root() -> None:
    assert arguments_of("USER")[-1].isdigit(), "a number, so that an orchestrator can check that it is not root"
    assert arguments_of("USER")[-1] != "0"


def test_the_data_directory_is_open_to_any_user() -> None:
    config = BrokerConfig.load(DOCKER / "server.properties", {})
    [volume] = arguments_of("VOLUME")
    assert config.log_dirs == [volume]
    assert f"install -d -m 1777 {volume}" in arguments_of("RUN")


@pytest.mark.parametrize("instruction", ["ENTRYPOINT", "CMD"])
def test_commands_are_lists(instruction: str) -> None:
    """The shell form would put a shell between the engine and the broker, and SIGTERM would end at the shell."""
    [arguments] = arguments_of(instruction)
    assert all(isinstance(word, str) for word in json.loads(arguments))


def test_what_is_copied_exists_and_is_let_in() -> None:
    let_in = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for arguments in arguments_of("COPY"):
        words = [word for word in shlex.split(arguments) if not word.startswith("--")]
        if "--from=" in arguments:
            continue
        for source in words[:-1]:
            assert (REPOSITORY / source).exists(), source
            assert source in let_in, source


def test_the_health_check_is_a_module_of_the_image() -> None:
    [check] = arguments_of("HEALTHCHECK")
    python, flag, module = json.loads(check[check.index("CMD") + len("CMD") :])
    assert (python, flag) == ("python", "-m")
    assert find_spec(module) is not None


def test_exposed_ports_are_those_of_the_configuration() -> None:
    config = BrokerConfig.load(DOCKER / "server.properties", {})
    listening = {*(endpoint.port for endpoint in config.listeners), config.metrics_port}
    assert {int(port) for port in arguments_of("EXPOSE")[0].split()} == listening


def test_compose_mounts_what_exists_and_publishes_on_loopback_alone() -> None:
    compose = load("compose.yaml")
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DOCKER / source).exists() if source.startswith(".") else source in compose["volumes"], volume
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), port
        if "build" not in service:
            assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"]), f"{name} has no chosen release"
        for needed in service.get("depends_on", []):
            assert needed in compose["services"]
    assert (DOCKER / compose["services"]["odradek"]["build"]["context"] / "pyproject.toml").exists()


def test_prometheus_scrapes_the_broker_with_the_labels_that_dashboards_select_by() -> None:
    [job] = load("prometheus/prometheus.yml")["scrape_configs"]
    [target] = job["static_configs"]
    config = BrokerConfig.load(DOCKER / "server.properties", {})
    assert target["targets"] == [f"odradek:{config.metrics_port}"]
    assert set(target["labels"]) == {"namespace", "strimzi_io_cluster", "kubernetes_pod_name", "env"}


def dashboard() -> Any:
    return json.loads((DOCKER / "grafana/dashboards/odradek.json").read_text())


def panels() -> list[Any]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def variables() -> dict[str, Any]:
    return {variable["name"]: variable for variable in dashboard()["templating"]["list"]}


def test_grafana_is_provisioned_with_what_is_mounted() -> None:
    [source] = load("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    [provider] = load("grafana/provisioning/dashboards/odradek.yaml")["providers"]
    mounts = dict(volume.split(":")[:2] for volume in load("compose.yaml")["services"]["grafana"]["volumes"])
    assert provider["options"]["path"] in mounts.values()
    assert variables()["datasource"]["current"]["value"] == source["uid"]


def test_every_panel_reads_the_chosen_data_source_and_the_chosen_jobs() -> None:
    assert list(variables()) == ["datasource", "job"]
    assert variables()["datasource"]["type"] == "datasource"
    assert variables()["job"]["datasource"]["uid"] == "${datasource}"
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}", panel["title"]
            series = re.findall(r"\b(?:kafka|odradek|process)_\w+(\{[^}]*\})?", target["expr"])
            assert series
            assert all('job=~"$job"' in selector for selector in series), target["expr"]


UNITS = (
    (r"rate\(\w+bytes(in|out)_total", "Bps"),
    (r"rate\(\w+messagesin_total", "cps"),
    (r"rate\(\w+(requests|errors)_total", "reqps"),
    (r"rate\(process_cpu_seconds_total", "none"),  # seconds a second: cores
    (r"_percent\b", "percentunit"),
    (r"\w+timems\b", "ms"),
    (r"_seconds\b", "s"),
    (r"_bytes\b|_log_size\b", "bytes"),
    (r"\w+", "none"),
)
"""By what an expression contains, the first that fits: the unit of its values."""


def test_a_panel_has_one_unit_and_its_expressions_are_of_it() -> None:
    for panel in panels():
        assert panel["fieldConfig"]["overrides"] == [], panel["title"]
        units = {
            next(unit for pattern, unit in UNITS if re.search(pattern, target["expr"])) for target in panel["targets"]
        }
        assert units == {panel["fieldConfig"]["defaults"]["unit"]}, panel["title"]


def test_legends_name_labels_that_the_expression_keeps() -> None:
    for panel in panels():
        for target in panel["targets"]:
            kept = re.match(r"\w+ by \(([^)]*)\)", target["expr"])
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named == (set(kept[1].split(", ")) if kept else set()), panel["title"]


def test_the_dashboard_has_a_row_of_consumer_lag_in_records_and_in_seconds() -> None:
    titles = [panel["title"] for panel in dashboard()["panels"]]
    row = titles.index("Consumer lag")
    assert titles[row + 1 : row + 3] == ["Lag in records", "Lag in seconds"]


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
