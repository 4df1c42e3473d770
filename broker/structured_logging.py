"""Structured log lines on top of stdlib logging: one line for each event, with its name and its fields.

```
human   2026-01-31 12:00:00,123 WARNING odradek.broker.server connection closed peer=127.0.0.1:50312 reason="size is -1"
json    {"time": "2026-01-31T12:00:00.123+0000", "level": "warning", "logger": "odradek.broker.server",
         "event": "connection closed", "peer": "127.0.0.1:50312", "reason": "size is -1"}
```

The name of an event is constant, so that users can search for it; everything that varies is a field. A client's input
(a client id) cannot break a line: values with spaces, quotes or control characters are quoted and escaped. A traceback
follows a human line, and is the field `traceback` of a JSON line.

`configure` is for a process that runs a broker. A broker that is embedded in another program leaves logging to that
program: its handlers print the same lines in human form.

`odradek.broker.storage`, which is used without a broker, too, logs sentences with plain `logging`, as the client does.
In JSON they are events without fields.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from io import FileIO, TextIOWrapper
from logging.handlers import WatchedFileHandler
from typing import Any, Literal, TextIO

Style = Literal["human", "json"]


class LogEvent:
    """A log message: the name of an event and its fields. Its text is `event key=value …`."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        self.name = name
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={_text(value)}" for key, value in self.fields.items())])


class StructuredLogger:
    """Logs events under the name of a logger, with fields that all of them have (`bind`).

    A hot path checks `enabled_for` before it builds the fields.
    """

    __slots__ = ("_bound", "_logger", "enabled_for")

    def __init__(self, name: str, bound: Mapping[str, Any] | None = None) -> None:
        self._logger = logging.getLogger(name)
        self._bound = dict(bound or {})
        self.enabled_for: Callable[[int], bool] = self._logger.isEnabledFor

    def bind(self, **fields: Any) -> StructuredLogger:
        """Return a logger that adds `fields` to every event."""
        return StructuredLogger(self._logger.name, {**self._bound, **fields})

    def debug(self, event: str, **fields: Any) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._log(logging.ERROR, event, fields)

    def log(self, level: int, event: str, **fields: Any) -> None:
        """Log at a level of `logging`."""
        self._log(level, event, fields)

    def exception(self, event: str, error: BaseException, **fields: Any) -> None:
        """Log at ERROR with the traceback of `error`."""
        self._log(logging.ERROR, event, fields, error)

    def _log(self, level: int, event: str, fields: Mapping[str, Any], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, LogEvent(event, {**self._bound, **fields}), exc_info=error, stacklevel=3)


class HumanFormatter(logging.Formatter):
    """One line of text for each event; `fields`, of the process, come before those of the event."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        own = "".join(f"{name}={_text(value)} ".replace("%", "%%") for name, value in fields.items())
        super().__init__(f"%(asctime)s %(levelname)-7s {own}%(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


class JsonFormatter(logging.Formatter):
    """One JSON object for each event. Its fields cannot replace `time`, `level`, `logger` and `event`.

    `fields` are those of the process.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__()
        self._fields = dict(fields)

    def format(self, record: logging.LogRecord) -> str:
        event = record.msg if isinstance(record.msg, LogEvent) else LogEvent(record.getMessage(), {})
        time = f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}{self.formatTime(record, '%z')}"
        line: dict[str, Any] = {
            **{key: address_text(value) if _is_address(value) else value for key, value in event.fields.items()},
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event.name,
            **self._fields,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(
    level: str = "info",
    style: Style = "human",
    stream: TextIO | None = None,
    fields: Mapping[str, Any] | None = None,
) -> None:
    """Write the events of this process at `level` and above to `stream`, by default standard error.

    `fields` are added to each line.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(fields or {}) if style == "json" else HumanFormatter(fields or {}))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


class _PrivateFileHandler(WatchedFileHandler):
    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return TextIOWrapper(FileIO(descriptor, "ab"), encoding=self.encoding, write_through=True)


def write_to_file(logger: str, path: str) -> None:
    """Append the events of one logger to a file, as JSON, all levels, and nowhere else. Raises OSError.

    A new file can be read and written by its owner only. When the file is renamed, as by logrotate, a new one is begun.
    """
    handler = _PrivateFileHandler(path, encoding="utf-8")
    handler.setFormatter(JsonFormatter({}))
    owner = logging.getLogger(logger)
    for before in owner.handlers[:]:
        owner.removeHandler(before)
        before.close()
    owner.addHandler(handler)
    owner.setLevel(logging.DEBUG)
    owner.propagate = False


def _text(value: Any) -> str:
    """A value in a human line: unquoted if it is one word, else quoted as JSON, which escapes control characters."""
    if _is_address(value):
        return address_text(value)
    text = str(value)
    if text and text.isprintable() and not any(c in ' "=' for c in text):
        return text
    return json.dumps(text)


def _is_address(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int)


def address_text(address: tuple[str, int]) -> str:
    """`host:port`, and `[host]:port` for IPv6."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
