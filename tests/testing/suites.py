"""Runs of a user's suite inside a test, in this process or in another one.

pytester forgets the modules that an inner run has imported, and a broker that ran twice would then have two classes of
each message. So everything is imported before.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import confluent_kafka
import pytest

from odradek import broker, client, protocol, testing

REPOSITORY = Path(__file__).resolve().parents[2]
PLUGIN = "odradek.testing.plugin"

assert confluent_kafka.Consumer
for package in (protocol, client, broker, testing):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith((".__main__", ".testing.plugin")) and ".store.etcd" not in module.name:
            import_module(module.name)


def run_suite(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run the suite of the directory in this process, with the plugin."""
    return run_pytest(pytester, "-p", PLUGIN, *arguments)


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run the suite of the directory in this process. Warnings are errors."""
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    return pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:timeout", *arguments)


def environment() -> dict[str, str]:
    """The environment of a process that imports this repository's packages, without options of pytest."""
    others = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return others | {"PYTHONPATH": str(REPOSITORY)}
