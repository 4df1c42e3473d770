"""The loggers of this broker as a resource with properties: a logger's name is the key, its level the value (KIP-412).

| Kafka's level | level in `logging` |
|---|---|
| TRACE | 5, below DEBUG; the broker logs nothing there |
| DEBUG, INFO, ERROR | the same |
| WARN, FATAL | WARNING, CRITICAL |

The resource's name is this broker's id; any other name is INVALID_REQUEST. A level can be set or deleted. A logger
without a level of its own has the level of the nearest logger above it, in the end that of `root`, whose level cannot
be deleted. A logger or level that does not exist is INVALID_CONFIG.

Nothing is stored: after a restart the levels are those of the configuration. Loggers belong to the process, so brokers
in one process share them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from odradek.broker.config.describe import ConfigRow, ConfigSource
from odradek.broker.config.types import TypeCode
from odradek.broker.metadata.administration.alter_configs import Change, Operation
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError

_LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
_ROOT = "root"


def describe_loggers(services: Services, name: str) -> list[ConfigRow]:
    """A row for each logger. Raises `KafkaError` INVALID_REQUEST for the id of another broker."""
    check_described_broker(services, name, str(services.config.node_id))
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
        for logger, level in _levels().items()
    ]


def alter_loggers(services: Services, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
    """Change levels, all or none. Raises `KafkaError` INVALID_REQUEST or INVALID_CONFIG."""
    _check_altered_broker(services, name)
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        if change.value is None or change.operation is Operation.DELETE:
            _logger(change.name).setLevel(logging.NOTSET)
        else:
            _logger(change.name).setLevel(_LEVELS[change.value])


def _check_altered_broker(services: Services, name: str) -> None:
    """Check the id of the broker whose loggers a client changes: it must be this broker.

    Raises `KafkaError` INVALID_REQUEST.
    """
    node_id = services.config.node_id
    try:
        named = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None
    if named != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}")


def check_described_broker(services: Services, name: str, expected: str) -> None:
    """Check the id of the broker whose properties or loggers a client asks for: it must be this broker.

    Raises `KafkaError` INVALID_REQUEST. Kafka's words differ from those for changes.
    """
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    try:
        named = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
    if named != services.config.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected} but received {name}")


def _check(change: Change) -> None:
    if change.operation in (Operation.APPEND, Operation.SUBTRACT):
        what = f"{change.operation.name} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(ErrorCode.INVALID_REQUEST, what)
    if not _exists(change.name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation is Operation.SET and change.value not in _LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level."
            f" Valid log levels are {', '.join(sorted(_LEVELS))}",
        )
    if change.operation is Operation.DELETE and change.name == _ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Removing the log level of the {_ROOT} logger is not allowed")


def _levels() -> dict[str, str]:
    """Kafka's name of the effective level of each logger."""
    named = logging.root.manager.loggerDict.items()
    loggers = {name: logger for name, logger in named if isinstance(logger, logging.Logger)}
    return {name: _level_of(logger) for name, logger in [(_ROOT, logging.root), *sorted(loggers.items())]}


def _exists(name: str) -> bool:
    return name == _ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def _logger(name: str) -> logging.Logger:
    return logging.root if name == _ROOT else logging.getLogger(name)


def _level_of(logger: logging.Logger) -> str:
    effective = logger.getEffectiveLevel()
    return next((name for name, number in _LEVELS.items() if effective <= number), "FATAL")
