"""The flags that commands share: the address of the cluster, the topic, and settings of the client."""

from __future__ import annotations

import argparse
from typing import Any

from odradek.client.cli.arguments.argument_types import assignment, named

_OTHER_NAMES = {
    "max_in_flight_requests_per_connection": "max_in_flight",
    "request_size_max": "max_request_size",
}
"""Properties of Kafka's clients whose setting here has another name than theirs with underscores."""


def add_bootstrap_argument(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT[,HOST:PORT]",
        help="brokers that name the rest of the cluster (default: %(default)s)",
    )


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster")
    add_bootstrap_argument(group)
    group.add_argument(
        "--command-config",
        metavar="PATH",
        help="a .properties file with settings of the client, TLS and passwords too (docs/client.md)",
    )
    group.add_argument(
        "--command-property",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="a setting of the client, such as linger.ms=20; takes precedence over --command-config",
    )


def add_topic_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", type=named, required=True, help="the topic's name")


def client_settings(arguments: argparse.Namespace, client: type) -> dict[str, Any]:
    """Return the settings of `--command-config` and `--command-property` as keywords of `client`, such as Producer.

    Raises ConfigurationError for a setting that this client does not have, and for a file that is no properties file;
    OSError for a file that cannot be read.
    """
    return settings_of_each(arguments, client)[0]


def settings_of_each(arguments: argparse.Namespace, *clients: type) -> list[dict[str, Any]]:
    """Return as `client_settings`, for several clients: each gets the settings that it has; one must have each."""
    settings: list[dict[str, Any]] = [{} for _ in clients]
    properties = [*read_properties(arguments.command_config), *arguments.command_property]
    if not properties:
        return settings
    from odradek.client.security.properties import IMPLIED
    from odradek.client.setting_names import property_types, unknown_property

    types = [property_types(client) for client in clients]
    for name, text in properties:
        if text in IMPLIED.get(name, ()):
            continue
        keyword = name.replace(".", "_")
        keyword = _OTHER_NAMES.get(keyword, keyword)
        if not any(keyword in known for known in types):
            raise unknown_property(name, clients)
        for of_client, known in zip(settings, types, strict=True):
            if keyword in known:
                of_client[keyword] = _value(text, known[keyword])
    return settings


def read_properties(path: str | None) -> list[tuple[str, str]]:
    """Return the properties of a file, in its order. Raises OSError, ConfigurationError."""
    if path is None:
        return []
    from pathlib import Path

    from odradek.client.errors import ConfigurationError
    from odradek.protocol.java_properties import MalformedPropertiesError, decode, parse

    try:
        entries = parse(decode(Path(path).read_bytes()))
    except MalformedPropertiesError as error:
        raise ConfigurationError("read the settings", f"{path}, {error}", "Write a backslash as two") from None
    return [(entry.key, entry.value.strip()) for entry in entries]


def _value(text: str, kind: str) -> Any:
    """Convert the text of a property to its value; `kind` is its type in the client's signature."""
    if kind.startswith("str"):
        return text
    if kind.startswith("Sequence["):
        return [part.strip() for part in text.split(",")]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)
