from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.broker_config import PROPERTIES
from odradek.broker.config.docs import files, help_text
from odradek.broker.config.ignored_properties import reasons_by_name

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", files())
def test_generated_files_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == files()[name](), "run `make docs`"


@pytest.mark.parametrize("name", ["config/server.properties", "config/dev.properties"])
def test_sample_configurations_load_without_a_warning(name: str) -> None:
    config = BrokerConfig.load(ROOT / name)

    assert config.warnings == ()
    assert config.metrics_port > 0


def test_commented_properties_of_the_server_file_are_defaults(tmp_path: Path) -> None:
    text = (ROOT / "config/server.properties").read_text(encoding="utf-8")
    assignments = [line[1:] for line in text.splitlines() if line.startswith("#") and "=" in line and line[1] != " "]
    path = tmp_path / "defaults.properties"
    without_authorizer = "allow.everyone.if.no.acl.found=false"  # is refused: there would be no rules at all
    path.write_text("\n".join(line for line in assignments if not line.endswith("=") and line != without_authorizer))

    given, defaults = BrokerConfig.load(path, {"broker.id": "1"}), BrokerConfig.load()

    for row in PROPERTIES.values():
        attribute = row.name.replace(".", "_")
        assert getattr(given, attribute) == getattr(defaults, attribute), row.name


def test_the_help_lists_all_properties() -> None:
    text = help_text()

    for name in [*PROPERTIES, *reasons_by_name()]:
        assert f"  {name}\n" in text
