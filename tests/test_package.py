"""The top of the package: four names, imported at their first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import odradek
from odradek.broker.broker import Broker
from odradek.client import Admin, Consumer, Producer

pytestmark = pytest.mark.process

NAMES = {"Admin": Admin, "Broker": Broker, "Consumer": Consumer, "Producer": Producer}


def loaded_after(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in done.stdout.split() if name.startswith("odradek")}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_class_of_its_module(name: str) -> None:
    assert getattr(odradek, name) is NAMES[name]


def test_the_package_says_which_names_it_has() -> None:
    assert set(odradek.__all__) == set(NAMES)
    assert set(NAMES) <= set(dir(odradek))


def test_type_checkers_see_the_same_names_in_the_same_modules() -> None:
    source = ast.parse(Path(str(odradek.__file__)).read_text())
    [checked] = [node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imported = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    found = {alias.name: node.module for node in imported for alias in node.names}
    assert found == {name: cls.__module__ for name, cls in NAMES.items()}


def test_importing_the_package_loads_no_module_of_it() -> None:
    assert loaded_after("import odradek; dir(odradek)") == {"odradek"}


def test_a_producer_is_imported_without_the_broker_and_a_broker_without_the_client() -> None:
    assert "odradek.broker" not in loaded_after("from odradek import Producer, Consumer, Admin")
    assert "odradek.client" not in loaded_after("from odradek import Broker")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'odradek' has no attribute 'Produce'"):
        odradek.Produce  # type: ignore[attr-defined] # noqa: B018 - the access is the test
    with pytest.raises(ImportError, match="cannot import name 'Produce'"):
        exec("from odradek import Produce")


async def test_the_four_names_work_together() -> None:
    async with odradek.Broker() as broker:
        async with odradek.Producer(broker.bootstrap) as producer:
            await producer.send_and_wait("greetings", b"hello")
        async with odradek.Consumer(broker.bootstrap, auto_offset_reset="earliest", group_id="readers") as consumer:
            await consumer.subscribe(["greetings"])
            records = []
            while not records:
                records = list(await consumer.poll())
        async with odradek.Admin(broker.bootstrap) as admin:
            assert "greetings" in await admin.list_topics()
    assert [record.value for record in records] == [b"hello"]
