"""The loggers of this broker as a resource with properties: a logger's name is the key, its level the value (KIP-412).

The resource's name is this broker's id; anything else is INVALID_REQUEST. A level can be set, and deleted, which leaves
the logger to those above it; `root` keeps one. INVALID_CONFIG for a logger or a level that does not exist. Nothing is
stored: a restart forgets it.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.config.describe import ConfigRow, ConfigSource
from odradek.broker.config.types import TypeCode
from odradek.broker.log_levels import LEVELS, ROOT, exists, levels, set_level, unset_level
from odradek.broker.metadata.config_changes import Change, Operation
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError


def describe_loggers(services: Services, name: str) -> list[ConfigRow]:
    """A row for each logger. Raises `KafkaError` INVALID_REQUEST for another broker's."""
    check_node(services, name)
    return [
        ConfigRow(
            logger,
            level,
            ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            is_default=False,
            read_only=False,
            sensitive=False,
            synonyms=[],
            type=TypeCode.UNKNOWN,
            documentation="",
        )
        for logger, level in levels().items()
    ]


def alter_loggers(services: Services, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
    """Change levels, all or none. Raises `KafkaError` INVALID_REQUEST, INVALID_CONFIG."""
    check_node(services, name)
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        if change.value is None or change.operation is Operation.DELETE:
            unset_level(change.name)
        else:
            set_level(change.name, change.value)


def check_node(services: Services, name: str) -> int:
    """Return this broker's id, which `name` must be. Raises `KafkaError` INVALID_REQUEST."""
    node_id = services.config.node_id
    try:
        named = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None
    if named != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    return node_id


def _check(change: Change) -> None:
    if change.operation in (Operation.APPEND, Operation.SUBTRACT):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{change.name}: the level of a logger is no list")
    if not exists(change.name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"there is no logger {change.name}")
    if change.operation is Operation.SET and change.value not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{change.name} = {change.value!r}: expected one of {', '.join(LEVELS)}"
        )
    if change.operation is Operation.DELETE and change.name == ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{ROOT} cannot be left to a logger above it")
