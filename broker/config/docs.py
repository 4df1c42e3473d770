"""The texts that are generated from the tables: the reference page, the sample configurations, `--help-config`.

`python -m broker.config` writes the files, and a test fails when they are out of date.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from odradek.broker.config.broker_config import PROPERTIES, BrokerConfig
from odradek.broker.config.ignored_properties import PREFIXES, reasons_by_name
from odradek.broker.config.property import Property, Table
from odradek.broker.config.topic_config import TOPIC_PROPERTIES, TopicProperty

_GENERATED = "Generated from the tables in broker/config by `make docs`; change those, not this."

_SERVER = {
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "data",
    "metrics.port": "9404",
}
_DEV = {
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:19092",
    "log.dirs": "data-dev",
    "metrics.port": "19404",
    "log.level": "debug",
    "record.validation": "records",
    "log.segment.bytes": "1048576",
    "log.segment.delete.delay.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}


def files() -> dict[str, Callable[[], str]]:
    """Return the function that generates each file, by its path in the project's directory."""
    return {
        "docs/configuration.md": configuration_page,
        "config/server.properties": server_properties,
        "config/dev.properties": dev_properties,
    }


def help_text() -> str:
    """Return every property with its type, default, bound and meaning, and the ignored properties, as plain text."""
    lines = []
    for title, rows in _sections():
        lines += [title.upper(), ""]
        for row in rows:
            about = textwrap.wrap(f"{_kind(row)}; default {_default(row)}. {row.documentation}", 94)
            lines += [f"  {row.name}", *(f"      {line}" for line in about), ""]
    lines += ["PROPERTIES OF KAFKA WITHOUT EFFECT HERE (they load with a warning)", ""]
    for reason, names in _by_reason().items():
        lines += [f"  {reason}:", *(f"      {name}" for name in names), ""]
    return "\n".join(lines)


def configuration_page() -> str:
    """Return docs/configuration.md."""
    return "\n".join(_page()) + "\n"


def server_properties() -> str:
    """Return config/server.properties: the properties of a first broker, and all others commented out."""
    lines = _comment(
        "A broker on loopback: python -m broker --config config/server.properties",
        "Commented properties show their defaults.",
        _GENERATED,
    )
    for title, rows in _sections():
        lines += ["", *_comment(f"---- {title}")]
        for row in rows:
            lines += ["", *_comment(row.documentation), _assignment(row, _SERVER)]
    return "\n".join(lines) + "\n"


def dev_properties() -> str:
    """Return config/dev.properties: verbose and quick, for a broker beside one with the other file."""
    lines = _comment(
        "A broker for development, with its own ports and directory, full validation and debug logging.", _GENERATED
    )
    for name, value in _DEV.items():
        lines += ["", *_comment(PROPERTIES[name].documentation), f"{name}={value}"]
    return "\n".join(lines) + "\n"


def _page() -> Iterator[str]:
    yield "# Configuration"
    yield ""
    yield f"<!-- {_GENERATED} -->"
    yield ""
    yield (
        "A broker reads a Java `.properties` file (`--config`) and any number of `--override name=value`. Names, "
        "defaults and bounds are those of Apache Kafka 4.3.1, unless the last column differs. An unknown name is an "
        "error, and so is a name that is set twice. *Dynamic* properties can be changed while the broker runs. The "
        "properties of TLS, authentication and tokens, and `max.connections`, can be set for one listener: "
        "`listener.name.<listener>.<property>`, those of authentication and tokens also for one mechanism of it: "
        "`listener.name.<listener>.<mechanism>.<property>`, names in lower case."
    )
    for title, rows in _sections():
        yield from ("", f"## {title}", "", "| property | type | default | valid | topic property | dynamic | |")
        yield "|---|---|---|---|---|---|---|"
        for row in rows:
            yield _line(
                f"`{row.name}`" + (" (own)" if row.own else ""),
                row.kind.code.name.lower(),
                _code(row.kind.text(row.default)),
                str(row.bound or ""),
                _code(row.topic),
                "yes" if row.dynamic else "",
                row.documentation,
            )
    yield from ("", "## Topics", "", *_topic_lines())
    yield from ("", "## Properties of Kafka without effect here", "")
    yield (
        "They load with a warning, so that an existing file can be used as it is; values that Kafka refuses are "
        "refused. Properties of Kafka 4.3.1 are stored and described as in Kafka. They can be changed at run time if "
        "Kafka allows that, with a warning in the log; classes cannot."
    )
    for reason, names in _by_reason().items():
        yield from ("", f"**{reason[0].upper()}{reason[1:]}**: " + ", ".join(f"`{name}`" for name in names) + ".")


def _topic_lines() -> Iterator[str]:
    yield "A property that a topic does not set itself has the value of the broker-wide property: set at run time for"
    yield "this broker, then for all brokers, then in the broker's file, then the default."
    yield from ("", "| property | type | default | valid | broker-wide | |", "|---|---|---|---|---|---|")
    for row in sorted(TOPIC_PROPERTIES.values()):
        yield _line(
            f"`{row.name}`",
            row.kind.code.name.lower(),
            _code(row.kind.text(row.default)),
            _topic_bound(row),
            _code(row.broker.name if row.broker else None),
            row.doc,
        )


def _sections() -> Iterator[tuple[str, list[Property[Any]]]]:
    """Yield the tables, each with the first line of its docstring."""
    for table in BrokerConfig.__bases__:
        if table is not Table and issubclass(table, Table):
            yield (table.__doc__ or "").splitlines()[0].rstrip("."), list(table.properties().values())


def _by_reason() -> dict[str, list[str]]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in {**reasons_by_name(), **{f"{prefix}*": reason for prefix, reason in PREFIXES.items()}}.items():
        by_reason.setdefault(reason, []).append(name)
    return by_reason


def _kind(row: Property[Any]) -> str:
    return row.kind.code.name.lower() + (f", {row.bound}" if row.bound else "")


def _default(row: Property[Any]) -> str:
    text = row.kind.text(row.default)
    return "unset" if text is None else text or "empty"


def _topic_bound(row: TopicProperty) -> str:
    return "" if row.bound is None or _function_name(row.bound) else str(row.bound)


def _function_name(bound: object) -> str | None:
    """Return the name of a bound that is a function; other bounds have a notation."""
    return getattr(bound, "__name__", None)


def _assignment(row: Property[Any], values: Mapping[str, str]) -> str:
    if row.name in values:
        return f"{row.name}={values[row.name]}"
    return f"#{row.name}={row.kind.text(row.default) or ''}"


def _comment(*paragraphs: str) -> list[str]:
    return [f"# {line}" for paragraph in paragraphs for line in textwrap.wrap(paragraph, 100)]


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
