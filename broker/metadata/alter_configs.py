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

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.broker.config.broker_config import DESCRIBED_PROPERTIES, nearest_name
from odradek.broker.config.describe import MIN_INSYNC_REPLICAS
from odradek.broker.config.group_config import GROUP_PROPERTIES
from odradek.broker.config.group_config import validate as validate_group
from odradek.broker.config.ignored_properties import IgnoredProperty, reason_ignored
from odradek.broker.config.topic_config import TOPIC_PROPERTIES, validate
from odradek.broker.config.types import InvalidValueError, Type, TypeCode, parse_list
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Cmp, Delete, Op, Put, still
from odradek.broker.metadata.topic_names import check_name
from odradek.broker.metadata.values import encode_configs
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


# `DynamicBrokerConfig.PER_BROKER_CONFIGS`, as far as they may be set here.
_OF_SINGLE_BROKERS = ("sasl.", "ssl.", "cordoned.log.dirs")


async def alter_topic_configs(
    metadata: Metadata, name: str, changes: Sequence[Change], *, replace: bool = False, validate_only: bool = False
) -> None:
    """Change a topic's properties; with `replace` those that `changes` do not name are deleted.

    Raises `KafkaError` INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
    """
    check_name(name)
    while True:
        image = metadata.image
        topic = image.topics.get(name)
        present = {} if replace or topic is None else topic.configs
        altered = changed(present, changes, _topic_schema)
        validate(altered, metadata.current_config.log_config())
        if topic is None:  # last, as in Kafka: what no topic could have is told first
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        if validate_only:
            return
        key = metadata.keys.topic_config(name)
        when = (still(key, topic.configs_revision), still(metadata.keys.topic_name(name), topic.name_revision))
        if await _write(metadata, key, altered, when):
            return


async def alter_broker_configs(
    metadata: Metadata,
    node_id: int | None,
    changes: Sequence[Change],
    *,
    replace: bool = False,
    validate_only: bool = False,
) -> None:
    """Change what is set at run time for one broker, or (None) for all; with `replace` to nothing but `changes`.

    Raises `KafkaError` INVALID_REQUEST for a property that does not exist or only changes with a restart, or for a
    value that it cannot have; INVALID_CONFIG for an item of what is no list; KAFKA_STORAGE_ERROR.
    """
    while True:
        image = metadata.image
        present, revision = image.broker_configs.get(node_id, ({}, 0))
        altered = changed({} if replace else present, changes, _broker_schema)
        _check_min_insync_replicas(node_id, present, altered, changes, replace=replace)
        _check_dynamic({name: text for name, text in altered.items() if present.get(name) != text}, node_id)
        everybody = {} if node_id is None else image.broker_configs.get(None, ({}, 0))[0]
        _check_rules(metadata, {**everybody, **altered})
        if validate_only:
            return
        key = metadata.keys.broker_config(node_id)
        if await _write(metadata, key, altered, (still(key, revision),)):
            return


async def alter_group_configs(
    metadata: Metadata, group_id: str, changes: Sequence[Change], *, replace: bool = False, validate_only: bool = False
) -> None:
    """Change a group's properties, whether there is the group or not; with `replace` to nothing but `changes`.

    Raises `KafkaError` INVALID_CONFIG, KAFKA_STORAGE_ERROR.
    """
    while True:
        present, revision = metadata.image.group_configs.get(group_id, ({}, 0))
        altered = changed({} if replace else present, changes, _group_schema)
        validate_group(metadata.config, altered)
        if validate_only:
            return
        key = metadata.keys.group_config(group_id)
        if await _write(metadata, key, altered, (still(key, revision),)):
            return


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


def _topic_schema(name: str) -> tuple[Type[Any], Any] | None:
    row = TOPIC_PROPERTIES.get(name)
    return None if row is None else (row.kind, row.default)


def _broker_schema(name: str) -> tuple[Type[Any], Any] | None:
    row = DESCRIBED_PROPERTIES.get(name)
    return None if row is None else (row.kind, row.default)


def _group_schema(name: str) -> tuple[Type[Any], Any] | None:
    row = GROUP_PROPERTIES.get(name)
    return None if row is None else (row.kind, row.default)


def _check_min_insync_replicas(
    node_id: int | None,
    present: Mapping[str, str],
    altered: Mapping[str, str],
    changes: Sequence[Change],
    *,
    replace: bool,
) -> None:
    """Raise `KafkaError` INVALID_CONFIG unless all brokers keep one value, as in a new cluster of Kafka (KIP-966).

    A broker's own value that an older version has stored may still be deleted.
    """
    name = MIN_INSYNC_REPLICAS
    named = any(change.name == name for change in changes)
    if node_id is None:
        if name not in altered and (named or replace):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} of all brokers cannot be removed, only changed")
    elif named and (name in altered or name not in present):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} cannot be altered for one broker, only for all of them")


def _check_dynamic(changes: Mapping[str, str], node_id: int | None) -> None:
    for name, text in changes.items():
        row = DESCRIBED_PROPERTIES.get(name)
        if row is None:
            # Differs from Kafka, which stores any name: there are no plug-ins here that could have others.
            reason = reason_ignored(name)
            if reason is not None:
                raise _refused(f"{name} has no effect here: {reason}")
            raise _refused(f"there is no broker property {name}{nearest_name(name)}")
        if not row.dynamic:
            raise _refused(f"{name} cannot be changed while the broker runs")
        if isinstance(row, IgnoredProperty):
            _check_ignored(row, node_id)
        try:
            row.parse(text)
        except InvalidValueError as error:
            shown = "(hidden)" if row.sensitive else repr(text)
            raise _refused(f"{name} = {shown}: {error}") from None


def _check_ignored(row: IgnoredProperty, node_id: int | None) -> None:
    if not row.is_settable:
        # Differs from Kafka, which reads keys and certificates for a listener, and loads classes.
        raise _refused(f"{row.name} cannot be set here: {row.reason}")
    if node_id is None and row.name.startswith(_OF_SINGLE_BROKERS):
        raise _refused(f"{row.name} cannot be set for all brokers, but for each")


def _check_rules(metadata: Metadata, dynamic: Mapping[str, str]) -> None:
    broken = metadata.config.altered(dynamic).broken_rules()
    if broken:
        raise _refused("; ".join(broken))


def _refused(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


async def _write(metadata: Metadata, key: bytes, configs: dict[str, str], when: tuple[Cmp, ...]) -> bool:
    op: Op = Put(key, encode_configs(configs)) if configs else Delete(key)
    return (await metadata.commit(when, (op,))).ok
