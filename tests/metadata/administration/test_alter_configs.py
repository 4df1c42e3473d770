from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.config.types import INT, LIST, Type
from odradek.broker.metadata.administration.alter_configs import Change, Operation, changed
from odradek.protocol.errors import ErrorCode, KafkaError


def schema(name: str) -> tuple[Type[Any], Any] | None:
    return {"number": (INT, 5), "list": (LIST, ["a", "b"]), "none": (LIST, [])}.get(name)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change("number", "7"), {"number": "7", "list": "x,y"}),
        (Change("other", "7"), {"number": "6", "list": "x,y", "other": "7"}),
        (Change("number", None, Operation.DELETE), {"list": "x,y"}),
        (Change("other", None, Operation.DELETE), {"number": "6", "list": "x,y"}),
        (Change("list", "y,z,z", Operation.APPEND), {"number": "6", "list": "x,y,z"}),
        (Change("list", "x,w", Operation.SUBTRACT), {"number": "6", "list": "y"}),
        (Change("list", "y, x", Operation.SUBTRACT), {"number": "6", "list": "x"}),
        (Change("list", " y", Operation.APPEND), {"number": "6", "list": "x,y, y"}),
        (Change("list", "", Operation.APPEND), {"number": "6", "list": "x,y,"}),
        (Change("list", "z,,", Operation.APPEND), {"number": "6", "list": "x,y,z"}),
        (Change("list", ",z", Operation.APPEND), {"number": "6", "list": "x,y,,z"}),
        (Change("list", ",", Operation.APPEND), {"number": "6", "list": "x,y"}),
        (Change("list", "", Operation.SUBTRACT), {"number": "6", "list": "x,y"}),
        (Change("none", "z", Operation.APPEND), {"number": "6", "list": "x,y", "none": "z"}),
    ],
)
def test_each_operation_changes_the_value(change: Change, expected: dict[str, str]) -> None:
    configs = {"number": "6", "list": "x,y"}

    assert changed(configs, [change], schema) == expected
    assert configs == {"number": "6", "list": "x,y"}


def test_a_list_operation_starts_from_the_default() -> None:
    assert changed({}, [Change("list", "c", Operation.APPEND)], schema) == {"list": "a,b,c"}
    assert changed({}, [Change("list", "a", Operation.SUBTRACT)], schema) == {"list": "b"}


@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
@pytest.mark.parametrize("name", ["number", "other"])
def test_a_list_operation_on_another_type_is_invalid(name: str, operation: Operation) -> None:
    with pytest.raises(KafkaError) as caught:
        changed({}, [Change(name, "1", operation)], schema)

    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert name in caught.value.detail
