"""Altering the properties of topics, brokers and groups at run time (KIP-339).

| operation | the property is then |
|---|---|
| SET | the value |
| DELETE | unset for the resource: the next source counts, in the end the default |
| APPEND | the list with the items of the value that it lacked, at its end |
| SUBTRACT | the list without the items of the value; of equal items the first one goes |

APPEND and SUBTRACT start from the value of the resource itself, else from the property's default. They are only valid
for lists, whose items are compared as they are written, with their white space. `current_config` has what holds after a
change. Source: Kafka's `ConfigurationControlManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.broker.config.broker_config import DESCRIBED_PROPERTIES, BrokerConfig, nearest_name
from odradek.broker.config.describe import MIN_INSYNC_REPLICAS
from odradek.broker.config.group_config import GROUP_PROPERTIES
from odradek.broker.config.group_config import validate as validate_group
from odradek.broker.config.ignored_properties import IgnoredProperty, reason_ignored
from odradek.broker.config.listener_config import PREFIX, listener_property
from odradek.broker.config.property import SecuredProperty, attribute_name
from odradek.broker.config.topic_config import TOPIC_PROPERTIES, validate
from odradek.broker.config.types import InvalidValueError, Type, TypeCode, invalid_value
from odradek.broker.metadata.administration.topic_names import check_name
from odradek.broker.metadata.administration.topic_writes import Report, no_report
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Cmp, Delete, Op, Put, still
from odradek.broker.metadata.values import encode_configs
from odradek.protocol.errors import ErrorCode, KafkaError


class Operation(IntEnum):
    """An operation, with its number in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """A change of one property; `value` is None only for DELETE."""

    name: str
    value: str | None
    operation: Operation = Operation.SET


Schema = Callable[[str], tuple[Type[Any], Any] | None]
"""Type and default of a property by name; None if there is no such property."""


# `DynamicBrokerConfig.PER_BROKER_CONFIGS`, those of them that may be set here.
_OF_SINGLE_BROKERS = ("sasl.", "ssl.", "cordoned.log.dirs")
_NOT_FOR_ALL = "Cannot update these configs at default cluster level, broker id must be specified"


async def alter_topic_configs(
    metadata: Metadata,
    name: str,
    changes: Sequence[Change],
    *,
    replace: bool = False,
    validate_only: bool = False,
    report: Report = no_report,
) -> None:
    """Change a topic's properties; with `replace`, those that `changes` do not name are deleted.

    Raises `KafkaError` INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
    """
    check_name(name)
    while True:
        image = metadata.image
        topic = image.topics.get(name)
        present = {} if replace or topic is None else topic.configs
        altered = changed(present, changes, _topic_schema)
        validate(altered, metadata.current_config.log_config())
        if topic is None:  # last, as in Kafka: an invalid property takes precedence
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
        if validate_only:
            return
        key = metadata.keys.topic_config(name)
        when = (still(key, topic.configs_revision), still(metadata.keys.topic_name(name), topic.name_revision))
        try:
            is_written = await _write(metadata, key, altered, when)
        except KafkaError as error:
            if error.code is ErrorCode.REQUEST_TIMED_OUT:
                report(topic, error)
            raise
        if is_written:
            report(topic, None)
            return


async def alter_broker_configs(
    metadata: Metadata,
    node_id: int | None,
    changes: Sequence[Change],
    *,
    replace: bool = False,
    validate_only: bool = False,
) -> None:
    """Change the run-time properties of one broker, or (None) of all; with `replace`, to nothing but `changes`.

    Raises `KafkaError` INVALID_REQUEST for an unknown property, one that needs a restart, or an invalid value;
    INVALID_CONFIG for an APPEND or SUBTRACT to a property that is not a list; KAFKA_STORAGE_ERROR.
    """
    while True:
        image = metadata.image
        present, revision = image.broker_configs.get(node_id, ({}, 0))
        altered = changed({} if replace else present, changes, _broker_schema)
        _check_dynamic(metadata.config, _set(present, altered, changes), node_id)
        of_all = {} if node_id is None else image.broker_configs.get(None, ({}, 0))[0]
        _check_rules(metadata, {**of_all, **altered})
        _check_min_insync_replicas(node_id, present, altered, changes, replace=replace)
        if validate_only:
            return
        key = metadata.keys.broker_config(node_id)
        if await _write(metadata, key, altered, (still(key, revision),)):
            return


async def alter_group_configs(
    metadata: Metadata, group_id: str, changes: Sequence[Change], *, replace: bool = False, validate_only: bool = False
) -> None:
    """Change a group's properties, whether it exists or not; with `replace`, to nothing but `changes`.

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
    """Return `configs` after `changes`. Raises `KafkaError` INVALID_CONFIG for a list operation on another type."""
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
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {change.operation.name} to key {change.name} because its type is not LIST.",
        )
    kind, default = found
    items = [item for item in _split(present if present is not None else kind.text(default) or "") if item]
    for item in _split(value):
        if change.operation is Operation.SUBTRACT and item in items:
            items.remove(item)
        elif change.operation is Operation.APPEND and item not in items:
            items.append(item)
    return ",".join(items)


def _split(text: str) -> list[str]:
    """Return the items as Java's `split(",")` does: with their white space, without empty ones at the end.

    The empty text has one empty item, which an APPEND adds: most properties then refuse the list.
    """
    if not text:
        return [""]
    return text.rstrip(",").split(",") if text.strip(",") else []


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
    """Raise `KafkaError` INVALID_CONFIG for a value of one broker only, or a deletion, as in Kafka (KIP-966).

    A broker's own value that an older version has stored may be deleted.
    """
    name = MIN_INSYNC_REPLICAS
    named = any(change.name == name for change in changes)
    if node_id is None:
        if name not in altered and (named or replace):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Cluster-level {name} cannot be removed while ELR is enabled.")
    elif named and (name in altered or name not in present):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Broker-level {name} cannot be altered while ELR is enabled.")


def _set(present: Mapping[str, str], altered: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str]:
    """Return what is set to another value, and what is set again: that may load a certificate."""
    named = {change.name for change in changes}
    return {name: text for name, text in altered.items() if present.get(name) != text or name in named}


def _check_dynamic(config: BrokerConfig, changes: Mapping[str, str], node_id: int | None) -> None:
    for name, text in changes.items():
        row = DESCRIBED_PROPERTIES.get(name) or config.listener_row(name)
        if row is None:
            # Differs from Kafka, which stores any name, because there are no plug-ins with properties of their own.
            reason = reason_ignored(name)
            if reason is not None:
                raise _refused(f"{name} has no effect here: {reason}")
            raise _refused(f"there is no broker property {name}{nearest_name(name)}")
        if not row.dynamic:
            raise _refused(f"Cannot update these configs dynamically: [{name}]")
        if node_id is None and row.name.startswith(_OF_SINGLE_BROKERS):
            raise _refused(f"{_NOT_FOR_ALL}: [{name}]")
        if isinstance(row, IgnoredProperty):
            _check_ignored(row)
        if isinstance(row, SecuredProperty):
            _check_secured(config, row, name, text)
        try:
            row.parse(text)
        except InvalidValueError as error:
            raise _refused(invalid_value(name, text, error, sensitive=row.sensitive)) from None


def _check_ignored(row: IgnoredProperty) -> None:
    if not row.is_settable:
        # Differs from Kafka, because there are no classes to load.
        raise _refused(f"{row.name} cannot be set here: {row.reason}")


def _check_secured(config: BrokerConfig, row: SecuredProperty[Any], name: str, text: str) -> None:
    """Allow nothing but the path that a listener's store has in the broker's file, which loads it again.

    As in Kafka, only with the prefix of a listener (`DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS`). Differs from
    Kafka: paths, passwords, users and rules of who may connect cannot be changed by a client, who might have stolen an
    administrator's password.
    """
    if not row.reloads or row.sensitive:
        raise _refused(f"{name} can only be set in the broker's file")
    if not name.startswith(PREFIX):
        raise _refused(f"{name} can only be set for a single listener, as {PREFIX}<listener>.{name}")
    listener, mechanism, _ = listener_property(name, [endpoint.name for endpoint in config.listeners])
    if getattr(config.listener(listener, mechanism), attribute_name(row.name)) != row.parse(text):
        raise _refused(f"{name} can only be set to the value that it has in the broker's file, which loads it again")


def _check_rules(metadata: Metadata, dynamic: Mapping[str, str]) -> None:
    broken = metadata.config.altered(dynamic).broken_rules()
    if broken:
        raise _refused("; ".join(broken))


def _refused(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


async def _write(metadata: Metadata, key: bytes, configs: dict[str, str], when: tuple[Cmp, ...]) -> bool:
    op: Op = Put(key, encode_configs(configs)) if configs else Delete(key)
    return (await metadata.commit(when, (op,))).ok
