"""The levels of loggers, seen and changed while the broker runs, by Kafka's names of them (KIP-412).

| Kafka | `logging` |
|---|---|
| TRACE | 5, below DEBUG; nothing of ours logs there |
| DEBUG, INFO, ERROR | the same |
| WARN, FATAL | WARNING, CRITICAL |

A logger without a level of its own has that of the nearest one above it, `root` in the end. Loggers are the process's:
brokers that share a process share them, and a restart begins with what the configuration says.
"""

from __future__ import annotations

import logging

LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
ROOT = "root"


def levels() -> dict[str, str]:
    """The level that holds for each logger, by its name."""
    named = logging.root.manager.loggerDict.items()
    loggers = {name: logger for name, logger in named if isinstance(logger, logging.Logger)}
    return {name: _level_of(logger) for name, logger in [(ROOT, logging.root), *sorted(loggers.items())]}


def exists(name: str) -> bool:
    return name == ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def set_level(name: str, level: str) -> None:
    """Give a logger that exists one of LEVELS."""
    _logger(name).setLevel(LEVELS[level])


def unset_level(name: str) -> None:
    """Let a logger that exists have the level of those above it again."""
    _logger(name).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_of(logger: logging.Logger) -> str:
    effective = logger.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if effective <= number), "FATAL")
