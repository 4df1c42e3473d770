from __future__ import annotations

import ast
from pathlib import Path

import pytest

import odradek.testing
from odradek.testing.aio import AsyncKafka
from odradek.testing.errors import KafkaTimeoutError
from odradek.testing.kafka import Kafka

NAMES = {"AsyncKafka": AsyncKafka, "Kafka": Kafka, "KafkaTimeoutError": KafkaTimeoutError}


def test_the_package_has_its_names_from_their_modules() -> None:
    assert set(odradek.testing.__all__) == set(NAMES)
    assert set(NAMES) <= set(dir(odradek.testing))
    assert {name: getattr(odradek.testing, name) for name in NAMES} == NAMES
    with pytest.raises(AttributeError, match=r"module 'odradek\.testing' has no attribute 'Kafkas'"):
        odradek.testing.Kafkas  # type: ignore[attr-defined] # noqa: B018 - the access is the test


def test_the_blocking_handle_and_its_twin_have_the_same_methods() -> None:
    def methods(cls: type) -> dict[str, str]:
        source = ast.parse(Path(f"{odradek.testing.__path__[0]}/{cls.__module__.rpartition('.')[2]}.py").read_text())
        [found] = [node for node in source.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__]
        return {
            node.name: f"{ast.unparse(node.args)} -> {ast.unparse(node.returns) if node.returns else ''}"
            for node in found.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        }

    assert len(methods(Kafka)) >= 8
    twin = methods(AsyncKafka)
    del twin["own"], twin["blocking_clock"]  # both use them
    assert methods(Kafka) == twin | {"clock": "self -> KafkaClock"}
