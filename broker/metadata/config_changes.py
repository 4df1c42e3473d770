"""How a request changes the properties that are set for a topic, a broker or a group (KIP-339).

| operation | the property is then |
|---|---|
| SET | the value |
| DELETE | not set here any more: the next source counts, in the end the default |
| APPEND | the list, with the items of the value that it lacked added at its end |
| SUBTRACT | the list, without the items of the value |

APPEND and SUBTRACT begin with what is set for the resource itself, else with the property's default, and only work on
properties that are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.broker.config.types import Type, TypeCode, parse_list
from odradek.protocol.errors import ErrorCode, KafkaError


class Operation(IntEnum):
    """By the numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One property to change; `value` is None only where it is deleted."""

    name: str
    value: str | None
    operation: Operation = Operation.SET


Schema = Callable[[str], tuple[Type[Any], Any] | None]
"""Type and default of a property by name; None if there is no such property."""


def changed(configs: Mapping[str, str], changes: Iterable[Change], schema: Schema) -> dict[str, str]:
    """Return `configs` after `changes`. Raises `KafkaError` INVALID_CONFIG for an operation on what is no list."""
    after = dict(configs)
    for change in changes:
        if change.operation is Operation.DELETE or change.value is None:
            after.pop(change.name, None)
        elif change.operation is Operation.SET:
            after[change.name] = change.value
        else:
            after[change.name] = _changed_list(after.get(change.name), change, change.value, schema)
    return after


def _changed_list(present: str | None, change: Change, value: str, schema: Schema) -> str:
    found = schema(change.name)
    if found is None or found[0].code is not TypeCode.LIST:
        what = "there is no such property" if found is None else "it is not a list"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{change.operation.name} does not work on {change.name}: {what}")
    kind, default = found
    items = [item for item in parse_list(present if present is not None else kind.text(default) or "") if item]
    given = parse_list(value)
    if change.operation is Operation.APPEND:
        return ",".join([*items, *(item for item in dict.fromkeys(given) if item not in items)])
    return ",".join(item for item in items if item not in given)
