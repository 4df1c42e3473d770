"""`odradek configs describe|alter`: configs of topics, brokers, loggers of brokers, and groups."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from odradek.client.cli import UsageError
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import named, not_negative
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.output.tables import add_json_argument, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.arguments import ConfigChange, ConfigResource
    from odradek.client.admin.results import ConfigEntry

_ACTIONS = {"describe": "Print configs", "alter": "Change single configs, and leave the others as they are"}
_BETWEEN_CONFIGS = re.compile(r",(?![^\[]*\])")  # a comma outside brackets

_OWN_SOURCES = {
    ("TOPIC", True): "DYNAMIC_TOPIC_CONFIG",
    ("BROKER", True): "DYNAMIC_BROKER_CONFIG",
    ("BROKER", False): "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ("BROKER_LOGGER", True): "DYNAMIC_BROKER_LOGGER_CONFIG",
    ("GROUP", True): "DYNAMIC_GROUP_CONFIG",
}
"""The source of configs that were set for the resource itself, by its type and whether it has a name."""

_ENTITY_TYPES = {"topics": "TOPIC", "brokers": "BROKER", "broker-loggers": "BROKER_LOGGER", "groups": "GROUP"}
"""The entity types of Kafka's ConfigCommand that have configs, and the types of their resources."""

_ELSEWHERE = {
    "users": "`odradek users` has the passwords of users, and `odradek quotas --user NAME` their quotas",
    "clients": "`odradek quotas --client-id NAME` has the quotas of clients",
    "ips": "`odradek quotas --ip ADDRESS` has the quotas of addresses",
}
"""The entity types of Kafka's ConfigCommand that have no configs here, with the command for each."""


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for action in actions.values():
        add_connection_arguments(action)
        _add_entity_arguments(action)
    actions["describe"].add_argument("--all", action="store_true", help="print defaults and static configs too")
    actions["describe"].add_argument("--documentation", action="store_true", help="print what each means (with --json)")
    add_json_argument(actions["describe"])
    alter = actions["alter"]
    for flag, what in (("add", "set"), ("append", "add to lists"), ("subtract", "take from lists")):
        alter.add_argument(
            f"--{flag}-config",
            type=_assignments,
            default=[],
            metavar="NAME=VALUE[,NAME=[VALUE,VALUE]]",
            help=f"{what}; values with commas go in brackets",
        )
    alter.add_argument("--delete-config", type=_names, default=[], metavar="NAME[,NAME]", help="back to the default")
    alter.add_argument("--validate-only", action="store_true", help="only check whether it could be changed")


def _add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    entity = parser.add_mutually_exclusive_group()
    entity.add_argument("--topic", type=named, metavar="NAME", help="of a topic")
    entity.add_argument("--broker", type=not_negative, metavar="ID", help="of one broker")
    entity.add_argument("--broker-defaults", action="store_true", help="of all brokers together")
    entity.add_argument("--broker-logger", type=not_negative, metavar="ID", help="log levels of one broker")
    entity.add_argument("--group", type=named, metavar="ID", help="of a group")
    entity.add_argument(
        "--entity-type",
        type=_entity_type,
        choices=tuple(_ENTITY_TYPES),
        help="with --entity-name; describe: without, of all",
    )
    name = parser.add_mutually_exclusive_group()
    name.add_argument("--entity-name", metavar="NAME", help="a topic or group, or the id of a broker")
    name.add_argument("--entity-default", action="store_true", help="of brokers: as --broker-defaults")


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    _check_entity(arguments)
    if arguments.action == "describe":
        return with_admin(arguments, _describe)
    changes = (arguments.add_config, arguments.append_config, arguments.subtract_config, arguments.delete_config)
    if not any(changes):
        raise UsageError("name a change: --add-config, --delete-config, --append-config or --subtract-config")
    return with_admin(arguments, _alter)


def _check_entity(arguments: argparse.Namespace) -> None:
    """Check the flags that name a resource. Raises UsageError."""
    kind, name = arguments.entity_type, arguments.entity_name
    is_short = arguments.broker_defaults or any(
        value is not None for value in (arguments.topic, arguments.broker, arguments.broker_logger, arguments.group)
    )
    if kind is None and (name is not None or arguments.entity_default):
        raise UsageError("--entity-type is missing: " + ", ".join(_ENTITY_TYPES))
    if kind is None and not is_short:
        raise UsageError("name what has the configs: --topic, --broker, --group or --entity-type with --entity-name")
    if arguments.entity_default and kind != "brokers":
        raise UsageError(f"{kind} have no defaults of their own: --entity-default is for brokers")
    if kind is not None and name is not None:
        try:
            (named if kind in ("topics", "groups") else not_negative)(name)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--entity-name: {error}") from None
    if _is_of_all(arguments) and arguments.action == "alter":
        raise UsageError("--entity-name is missing" + (", or --entity-default" if kind == "brokers" else ""))


def _is_of_all(arguments: argparse.Namespace) -> bool:
    """Return whether the flags name all resources of a type."""
    return arguments.entity_type is not None and arguments.entity_name is None and not arguments.entity_default


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    resources = await _resources(admin, arguments)
    results = await admin.describe_configs(
        resources, include_synonyms=True, include_documentation=arguments.documentation
    )
    rows = [
        {"entity": str(resource)} | _row(entry, with_documentation=arguments.documentation)
        for resource, entries in results.succeeded.items()
        for entry in sorted(entries.values(), key=lambda entry: entry.name)
        if arguments.all or entry.source.name == _OWN_SOURCES[resource.type.name, bool(resource.name)]
    ]
    columns = ["name", "value", "source", "type", "read_only", "sensitive"]
    is_of_all = _is_of_all(arguments)
    if is_of_all:
        columns.insert(0, "entity")
    if arguments.json:
        columns += ["synonyms", "documentation"] if arguments.documentation else ["synonyms"]
    print_rows(columns, rows, as_json=arguments.json)
    if not rows and not results.failed:
        of = f"any of the {arguments.entity_type}" if is_of_all else resources[0]
        hint = "" if arguments.all else "; --all prints defaults and static configs too"
        print(f"no config is set for {of}{hint}", file=sys.stderr)
    return await status_of(admin, results)


def _row(entry: ConfigEntry, *, with_documentation: bool) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type.name,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [{"name": one.name, "value": one.value, "source": one.source.name} for one in entry.synonyms],
        "documentation": entry.documentation if with_documentation else None,
    }


async def _alter(admin: Admin, arguments: argparse.Namespace) -> int:
    [resource] = await _resources(admin, arguments)
    results = await admin.alter_configs({resource: _changes(arguments)}, validate_only=arguments.validate_only)
    if not results.failed:
        print(f"the configs of {resource} {'could be' if arguments.validate_only else 'are'} altered")
    return await status_of(admin, results)


def _changes(arguments: argparse.Namespace) -> list[ConfigChange]:
    from odradek.client.admin.arguments import ConfigChange, ConfigOperation

    changes = {
        ConfigOperation.SET: arguments.add_config,
        ConfigOperation.APPEND: arguments.append_config,
        ConfigOperation.SUBTRACT: arguments.subtract_config,
        ConfigOperation.DELETE: [(name, None) for name in arguments.delete_config],
    }
    return [ConfigChange(name, value, operation) for operation, pairs in changes.items() for name, value in pairs]


async def _resources(admin: Admin, arguments: argparse.Namespace) -> list[ConfigResource]:
    """Return the named resource, or with `--entity-type` alone all of that type, as Kafka's ConfigCommand does."""
    from odradek.client.admin.arguments import ConfigResource, ResourceType

    if arguments.topic is not None:
        return [ConfigResource.topic(arguments.topic)]
    if arguments.group is not None:
        return [ConfigResource.group(arguments.group)]
    if arguments.broker_logger is not None:
        return [ConfigResource(ResourceType.BROKER_LOGGER, str(arguments.broker_logger))]
    if arguments.entity_type is None:
        return [ConfigResource.broker(arguments.broker)]
    kind = ResourceType[_ENTITY_TYPES[arguments.entity_type]]
    if not _is_of_all(arguments):
        return [ConfigResource(kind, arguments.entity_name or "")]
    if kind is ResourceType.TOPIC:
        names = list(await admin.list_topics(include_internal=True))
    elif kind is ResourceType.GROUP:
        names = list(await admin.list_groups())
    else:
        names = [str(one.node_id) for one in (await admin.describe_cluster()).brokers]
    return [ConfigResource(kind, name) for name in (*names, *([""] if kind is ResourceType.BROKER else []))]


def _entity_type(text: str) -> str:
    if text in _ELSEWHERE:
        raise argparse.ArgumentTypeError(f"{text} have no configs: {_ELSEWHERE[text]}")
    return text


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names no property")
    return names


def _assignments(text: str) -> list[tuple[str, str]]:
    """Parse `name=value,name=[value,value]`; raises ArgumentTypeError."""
    pairs = []
    for part in _BETWEEN_CONFIGS.split(text):
        name, sign, value = part.partition("=")
        if not sign or not name.strip():
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form name=value")
        pairs.append((name.strip(), value.strip().removeprefix("[").removesuffix("]")))
    return pairs
