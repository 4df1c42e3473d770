"""`odradek groups list|describe|reset-offsets|delete|delete-offsets`: flags as of Kafka's ConsumerGroupCommand."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.client.cli import UsageError, fail
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import named, not_negative
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.arguments.times import before_now, duration_ms, timestamp
from odradek.client.cli.output.tables import add_json_argument, print_json, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.cli.offset_reset import Move, Scenario
    from odradek.client.record import TopicPartition

_ACTIONS = {
    "list": "List groups",
    "describe": "Print state, members, assignment, committed offsets and lag of groups",
    "reset-offsets": "Change the committed offsets of groups without members; needs --execute, else prints them",
    "delete": "Delete groups without members, with their offsets",
    "delete-offsets": "Delete committed offsets of topics that no member reads",
}
_INACTIVE = ("Empty", "Dead")
_STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", "NotReady"),
    *_INACTIVE,
)
_TYPES = ("classic", "consumer", "share", "streams")


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for name, action in actions.items():
        add_connection_arguments(action)
        if name == "delete-offsets":
            action.add_argument("--group", type=named, required=True, metavar="ID")
        elif name != "list":
            which = action.add_mutually_exclusive_group(required=name != "describe")
            which.add_argument(
                "--group",
                action="append",
                type=named,
                metavar="ID",
                help=f"repeatable{' (default: all groups)' if name == 'describe' else ''}",
            )
            which.add_argument("--all-groups", action="store_true", help="all groups of consumers")
    listing = actions["list"]
    listing.add_argument("--state", type=_states, default=[], metavar="STATE[,STATE]", help=", ".join(_STATES))
    listing.add_argument("--type", type=_types, default=[], metavar="TYPE[,TYPE]", help=", ".join(_TYPES))
    actions["describe"].add_argument("--members", action="store_true", help="print members, not partitions")
    _add_topic_arguments(actions["delete-offsets"], required=True)
    _add_reset_arguments(actions["reset-offsets"])
    for name in ("list", "describe", "reset-offsets"):
        add_json_argument(actions[name])


def _add_topic_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--topic",
        action="append",
        type=_topic,
        required=required,
        metavar="NAME[:0,1]",
        help="all partitions of this topic, or these (repeatable)",
    )


def _add_reset_arguments(parser: argparse.ArgumentParser) -> None:
    _add_topic_arguments(parser, required=False)
    parser.add_argument("--all-topics", action="store_true", help="all partitions with a committed offset of the group")
    to = parser.add_mutually_exclusive_group(required=True)
    for name in ("earliest", "latest", "current"):
        to.add_argument(f"--to-{name}", dest="to", action="store_const", const=name, help=f"to the {name} offset")
    to.add_argument("--to-offset", type=not_negative, metavar="N", help="to this offset")
    to.add_argument("--shift-by", type=int, metavar="N", help="by this number of offsets, back if negative")
    to.add_argument("--to-datetime", type=timestamp, metavar="TIME", help="to the first record then: ISO 8601, ms, -1h")
    to.add_argument(
        "--by-duration", type=duration_ms, metavar="DURATION", help="to the first record since then: PT1H30M, 90s"
    )
    to.add_argument("--from-file", metavar="PATH", help="to the offsets of a file of [group,]topic,partition,offset")
    parser.add_argument("--execute", action="store_true", help="change the offsets; without this, only print them")
    parser.add_argument("--dry-run", action="store_true", help="only print the new offsets (the default)")
    parser.add_argument("--export", action="store_true", help="print [group,]topic,partition,offset, for --from-file")


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    if arguments.action == "reset-offsets":
        if arguments.execute and arguments.dry_run:
            raise UsageError("--execute and --dry-run exclude each other")
        if sum((arguments.all_topics, bool(arguments.topic), arguments.from_file is not None)) != 1:
            raise UsageError("name the partitions by one of --topic, --all-topics and --from-file")
    work = {
        "list": _list,
        "describe": _describe,
        "reset-offsets": _reset_offsets,
        "delete": _delete,
        "delete-offsets": _delete_offsets,
    }[arguments.action]
    return with_admin(arguments, work)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    groups = await admin.list_groups(states=arguments.state, types=arguments.type)
    rows = [
        {
            "group": one.group_id,
            "type": one.type,
            "protocol": one.protocol_type,
            "state": one.state,
            "coordinator": one.coordinator,
        }
        for one in groups.values()
    ]
    print_rows(("group", "type", "protocol", "state", "coordinator"), rows, as_json=arguments.json)
    return 0


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.cli.output.group_description import document_of, print_group

    described = await admin.describe_groups(await _groups(admin, arguments))
    status = await status_of(admin, described)
    documents = []
    for group in described.succeeded.values():
        lags = await admin.group_lag(group.group_id)
        status = max(status, await status_of(admin, lags))
        documents.append(document_of(group, lags))
    if arguments.json:
        print_json(documents)
    else:
        for index, document in enumerate(documents):
            print_group(document, with_members=arguments.members, is_first=not index)
    return status


async def _groups(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    """Return the named groups, or all that consumers may have made. Kafka: `ListGroupsOptions.forConsumerGroups`."""
    if arguments.group is not None:
        return list(dict.fromkeys(arguments.group))
    protocols = ("", "consumer") if arguments.all_groups else None
    return [
        one.group_id
        for one in (await admin.list_groups()).values()
        if one.type in ("", "classic", "consumer") and (protocols is None or one.protocol_type in protocols)
    ]


async def _reset_offsets(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.cli.offset_reset import read_offsets

    of_file = None if arguments.from_file is None else read_offsets(arguments.from_file)  # perhaps a pipe: once
    moves: dict[str, list[Move]] = {}
    status = 0
    for group in await _groups(admin, arguments):
        state = await _state(admin, group)
        if state in _INACTIVE:
            wanted = None if of_file is None else of_file.get(None, {}) | of_file.get(group, {})
            moves[group] = await _plan(admin, group, _scenario(arguments, wanted), arguments)
        else:
            status = fail(
                ValueError(f"group {group} is {state}: its offsets can be reset only while it has no members")
            )
    _print_moves(moves, arguments)
    for group, of_group in moves.items():
        if not of_group:
            print(_nothing_to_reset(group, arguments), file=sys.stderr)
        elif arguments.execute:
            new = {move.partition: move.new for move in of_group}
            status = max(status, await status_of(admin, await admin.alter_group_offsets(group, new)))
    if any(moves.values()) and not arguments.execute:
        print("dry run: nothing was changed; --execute changes the offsets", file=sys.stderr)
    return status


def _nothing_to_reset(group: str, arguments: argparse.Namespace) -> str:
    if arguments.from_file is not None:
        return f"nothing to reset: {arguments.from_file} has no line of group {group}"
    return f"nothing to reset: group {group} has committed no offsets"


async def _plan(admin: Admin, group: str, wanted: Scenario, arguments: argparse.Namespace) -> list[Move]:
    """Return the moves of a group that has no members. Raises ClientError, OSError, ValueError."""
    from odradek.client.cli.offset_reset import plan

    listed = (await admin.list_group_offsets({group: None})).value(group)
    committed = {partition: one.offset for partition, one in listed.values_or_raise().items() if one is not None}
    if wanted.offsets is not None:
        partitions = list(wanted.offsets)
    else:
        partitions = list(committed) if arguments.all_topics else await _partitions(admin, arguments.topic)
    return await plan(admin, partitions, committed, wanted)


def _print_moves(moves: Mapping[str, Sequence[Move]], arguments: argparse.Namespace) -> None:
    """Print a table, or with `--export` the lines that `--from-file` reads. Several groups have their names in them."""
    if arguments.export:
        lines = csv.writer(sys.stdout, lineterminator="\n")
        is_single = arguments.group is not None and len(arguments.group) == 1
        for group, of_group in moves.items():
            lines.writerows([*([] if is_single else [group]), *move.partition, move.new] for move in of_group)
        return
    rows = [
        {
            "group": group,
            "topic": move.partition.topic,
            "partition": move.partition.partition,
            "current_offset": move.committed,
            "new_offset": move.new,
        }
        for group, of_group in moves.items()
        for move in of_group
    ]
    columns = ("group", "topic", "partition", "current_offset", "new_offset")
    print_rows(columns, rows, as_json=arguments.json)


async def _state(admin: Admin, group: str) -> str:
    from odradek.client.errors import BrokerError
    from odradek.protocol.errors import ErrorCode

    try:
        return (await admin.describe_groups([group])).value(group).state
    except BrokerError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


def _scenario(arguments: argparse.Namespace, offsets: dict[TopicPartition, int] | None) -> Scenario:
    from odradek.client.cli.offset_reset import Scenario

    time = arguments.to_datetime
    if arguments.by_duration is not None:
        time = before_now(arguments.by_duration)
    return Scenario(
        name=arguments.to,
        offset=arguments.to_offset,
        shift=arguments.shift_by,
        timestamp=time,
        offsets=offsets,
    )


async def _partitions(admin: Admin, topics: list[tuple[str, list[int]]]) -> list[TopicPartition]:
    """Return the named partitions; all of a topic that was named without numbers. Raises ClientError."""
    from odradek.client.record import TopicPartition

    whole = [name for name, numbers in topics if not numbers]
    described = (await admin.describe_topics(whole)).values_or_raise()
    named = [TopicPartition(name, number) for name, numbers in topics for number in numbers]
    return named + [TopicPartition(name, one.partition) for name in whole for one in described[name].partitions]


async def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    results = await admin.delete_groups(await _groups(admin, arguments))
    for group in results.succeeded:
        print(f"{group} is deleted")
    return await status_of(admin, results)


async def _delete_offsets(admin: Admin, arguments: argparse.Namespace) -> int:
    partitions = await _partitions(admin, arguments.topic)
    results = await admin.delete_group_offsets(arguments.group, partitions)
    for partition in results.succeeded:
        print(f"the offset of {partition} is deleted")
    return await status_of(admin, results)


def _topic(text: str) -> tuple[str, list[int]]:
    """Parse `name` or `name:0,1`; raises ArgumentTypeError."""
    name, colon, numbers = text.partition(":")
    return named(name), [not_negative(number) for number in numbers.split(",")] if colon else []


def _states(text: str) -> list[str]:
    return _chosen(text, _STATES)


def _types(text: str) -> list[str]:
    return _chosen(text, _TYPES)


def _chosen(text: str, known: Sequence[str]) -> list[str]:
    """Parse words of `known`, in any case, with commas between them. Raises ArgumentTypeError for another word."""
    by_word = {word.lower(): word for word in known}
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word.lower() not in by_word:
            raise argparse.ArgumentTypeError(f"there is no {word}: there are {', '.join(known)}")
    return [by_word[word.lower()] for word in words]
