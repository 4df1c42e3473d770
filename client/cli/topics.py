"""`odradek topics create|list|describe|offsets|alter|delete|delete-records`.

The flags are those of Kafka's TopicCommand, GetOffsetShell and DeleteRecordsCommand.
"""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING

from odradek.client.cli import UsageError
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import assignment, named, not_negative, positive
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.arguments.times import timestamp
from odradek.client.cli.output.tables import add_json_argument, print_json, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.results import PartitionDescription, Results, TopicDescription
    from odradek.client.record import TopicPartition

Assignments = list[list[int]]
"""The replicas of each partition, the preferred leader first."""

_ACTIONS = {
    "create": "Create a topic",
    "list": "List topics",
    "describe": "Print partitions, leaders, replicas and properties of topics",
    "offsets": "Print the offset of a time, or where partitions begin or end",
    "alter": "Add partitions to a topic, or change its properties",
    "delete": "Delete topics with their records",
    "delete-records": "Delete the oldest records of partitions",
}


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for name, action in actions.items():
        add_connection_arguments(action)
        if name in ("create", "alter", "offsets", "delete-records"):
            action.add_argument("--topic", type=named, required=True, help="the topic's name")
        elif name != "list":
            required = name == "delete"
            action.add_argument(
                "--topic",
                action="append",
                type=named,
                required=required,
                metavar="NAME",
                help="a topic's name (repeatable)",
            )
        if name in ("create", "alter"):
            _add_layout_arguments(action)
    actions["create"].add_argument("--replication-factor", type=positive, metavar="N", help="default: the broker's")
    actions["create"].add_argument("--if-not-exists", action="store_true", help="succeed if the topic exists")
    actions["create"].add_argument(
        "--validate-only", action="store_true", help="only check whether it could be created"
    )
    actions["alter"].add_argument("--delete-config", action="append", default=[], metavar="NAME", help="to the default")
    actions["delete"].add_argument("--if-exists", action="store_true", help="succeed if a topic does not exist")
    actions["list"].add_argument("--exclude-internal", action="store_true", help="leave out topics of the brokers")
    actions["describe"].add_argument("--offsets", action="store_true", help="print where partitions begin and end, too")
    only = actions["describe"].add_mutually_exclusive_group()
    only.add_argument(
        "--under-replicated-partitions", action="store_true", help="only partitions with replicas out of sync"
    )
    only.add_argument("--unavailable-partitions", action="store_true", help="only partitions without a leader")
    _add_records_arguments(actions["delete-records"])
    _add_partition_argument(actions["offsets"])
    actions["offsets"].add_argument(
        "--time",
        type=_place,
        default="latest",
        metavar="TIME|earliest|latest|max-timestamp",
        help="the first record at or after this time: ms, ISO 8601, -1h (default: latest, behind the last record)",
    )
    for name in ("list", "describe", "offsets", "delete-records"):
        add_json_argument(actions[name])


def _add_layout_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partitions", type=positive, metavar="N", help="how many in all (default: the broker's)")
    parser.add_argument(
        "--config", action="append", default=[], type=assignment, metavar="NAME=VALUE", help="a property (repeatable)"
    )
    parser.add_argument(
        "--replica-assignment",
        type=_assignments,
        metavar="1:2,2:1",
        help="the brokers of each partition, the preferred leader first",
    )


def _add_records_arguments(parser: argparse.ArgumentParser) -> None:
    _add_partition_argument(parser)
    parser.add_argument(
        "--before-offset",
        type=_before,
        required=True,
        metavar="N|latest",
        help="delete the records before this offset; latest: all",
    )


def _add_partition_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partition", type=not_negative, metavar="N", help="of this partition (default: of all)")


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    work = {
        "create": _create,
        "list": _list,
        "describe": _describe,
        "offsets": _list_offsets,
        "alter": _alter,
        "delete": _delete,
        "delete-records": _delete_records,
    }[arguments.action]
    if arguments.action in ("create", "alter"):
        _check_layout(arguments)
    return with_admin(arguments, work)


def _check_layout(arguments: argparse.Namespace) -> None:
    """Check the flags of `create` and `alter`. Raises UsageError for some that exclude each other."""
    by_hand = arguments.replica_assignment is not None
    if arguments.action == "create":
        if by_hand and (arguments.partitions or arguments.replication_factor):
            raise UsageError(
                "--replica-assignment sets the number of partitions and replicas: leave out the other flags"
            )
    elif not (arguments.partitions or arguments.config or arguments.delete_config):
        raise UsageError("name a change: --partitions, --config or --delete-config")
    elif by_hand and not arguments.partitions:
        raise UsageError("--replica-assignment is for new partitions: --partitions, their total, is missing")


async def _create(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.arguments import NewTopic
    from odradek.client.errors import TopicExistsError

    assignments: Assignments = arguments.replica_assignment or []
    new = NewTopic(
        arguments.topic,
        arguments.partitions or -1,
        arguments.replication_factor or -1,
        dict(arguments.config),
        dict(enumerate(assignments)),
    )
    results = await admin.create_topics([new], validate_only=arguments.validate_only)
    if arguments.if_not_exists and isinstance(results[arguments.topic], TopicExistsError):
        return 0
    if not results.failed:
        print(f"{arguments.topic} {'could be created' if arguments.validate_only else 'is created'}")
    return await status_of(admin, results)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    topics = await admin.list_topics(include_internal=not arguments.exclude_internal)
    rows = [
        {"topic": one.name, "topic_id": one.topic_id, "partitions": one.partitions, "internal": one.is_internal}
        for one in topics.values()
    ]
    print_rows(("topic", "partitions", "internal", "topic_id"), rows, as_json=arguments.json)
    return 0


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.cli.output.topic_description import document_of, print_partitions, print_topics

    names = arguments.topic or list(await admin.list_topics(include_internal=True))
    described = await admin.describe_topics(names)
    overrides = await _overrides(admin, described.succeeded)
    status = max(await status_of(admin, described), await status_of(admin, overrides))
    documents = []
    is_report = arguments.under_replicated_partitions or arguments.unavailable_partitions
    for name, topic in described.succeeded.items():
        shown = [one for one in topic.partitions if _is_shown(one, arguments)]
        if is_report and not shown:
            continue
        offsets = await _offsets(admin, topic) if arguments.offsets else {}
        documents.append(document_of(topic, shown, overrides.succeeded.get(name), offsets))
    if arguments.json:
        print_json(documents)
    elif is_report:
        print_partitions(documents)
    else:
        print_topics(documents)
    return status


def _is_shown(partition: PartitionDescription, arguments: argparse.Namespace) -> bool:
    if arguments.under_replicated_partitions:
        return len(partition.isr) < len(partition.replicas)
    return partition.leader is None if arguments.unavailable_partitions else True


async def _overrides(admin: Admin, topics: Iterable[str]) -> Results[str, dict[str, str | None]]:
    """Return the properties that were set for each topic itself. Raises ClientError."""
    from odradek.client.admin.arguments import ConfigResource
    from odradek.client.admin.results import ConfigSource, Results
    from odradek.client.errors import ClientError

    described = await admin.describe_configs([ConfigResource.topic(topic) for topic in topics])
    overrides: Results[str, dict[str, str | None]] = Results()
    for resource, entries in described.items():
        overrides[resource.name] = (
            entries
            if isinstance(entries, ClientError)
            else {
                name: entry.value
                for name, entry in sorted(entries.items())
                if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
            }
        )
    return overrides


async def _offsets(admin: Admin, topic: TopicDescription) -> dict[int, dict[str, int]]:
    from odradek.client.admin.arguments import OffsetSpec
    from odradek.client.record import TopicPartition

    partitions = [TopicPartition(topic.name, one.partition) for one in topic.partitions if one.leader is not None]
    begins = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {
        partition.partition: {
            "log_start_offset": begins.value(partition).offset,
            "log_end_offset": ends.value(partition).offset,
        }
        for partition in partitions
    }


async def _alter(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.arguments import ConfigChange, ConfigOperation, ConfigResource, NewPartitions

    status = 0
    if arguments.partitions:
        described = (await admin.describe_topics([arguments.topic])).value(arguments.topic)
        assignments: Assignments | None = arguments.replica_assignment
        added = None if assignments is None else assignments[len(described.partitions) :]
        grown = await admin.create_partitions({arguments.topic: NewPartitions(arguments.partitions, added)})
        status = await status_of(admin, grown)
    changes = [ConfigChange(name, value) for name, value in arguments.config]
    changes += [ConfigChange(name, None, ConfigOperation.DELETE) for name in arguments.delete_config]
    if changes and not status:
        status = await status_of(admin, await admin.alter_configs({ConfigResource.topic(arguments.topic): changes}))
    if not status:
        print(f"{arguments.topic} is altered")
    return status


async def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.results import Results
    from odradek.client.errors import UnknownTopicError

    results = await admin.delete_topics(arguments.topic)
    if arguments.if_exists:
        results = Results({name: one for name, one in results.items() if not isinstance(one, UnknownTopicError)})
    for name in results.succeeded:
        print(f"{name} is deleted")
    return await status_of(admin, results)


async def _list_offsets(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.arguments import OffsetSpec

    place = arguments.time
    if isinstance(place, str):
        place = OffsetSpec[place.upper().replace("-", "_")]
    results = await admin.list_offsets(dict.fromkeys(await _partitions(admin, arguments), place))
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": found.offset if found.offset >= 0 else None,
            "timestamp": found.timestamp if found.timestamp >= 0 else None,
        }
        for partition, found in results.succeeded.items()
    ]
    print_rows(("topic", "partition", "offset", "timestamp"), rows, as_json=arguments.json)
    return await status_of(admin, results)


async def _partitions(admin: Admin, arguments: argparse.Namespace) -> list[TopicPartition]:
    """Return the named partition, or all of the topic. Raises ClientError."""
    from odradek.client.record import TopicPartition

    if arguments.partition is not None:
        return [TopicPartition(arguments.topic, arguments.partition)]
    described = (await admin.describe_topics([arguments.topic])).value(arguments.topic)
    return [TopicPartition(arguments.topic, one.partition) for one in described.partitions]


async def _delete_records(admin: Admin, arguments: argparse.Namespace) -> int:
    partitions = await _partitions(admin, arguments)
    results = await admin.delete_records(dict.fromkeys(partitions, arguments.before_offset))
    rows = [
        {"topic": partition.topic, "partition": partition.partition, "log_start_offset": start}
        for partition, start in results.succeeded.items()
    ]
    print_rows(("topic", "partition", "log_start_offset"), rows, as_json=arguments.json)
    return await status_of(admin, results)


def _assignments(text: str) -> Assignments:
    try:
        return [[not_negative(broker) for broker in replicas.split(":")] for replicas in text.split(",")]
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}: write brokers as 1:2,2:1") from None


def _place(text: str) -> int | str:
    return text if text in ("earliest", "latest", "max-timestamp") else timestamp(text)


def _before(text: str) -> int:
    return -1 if text == "latest" else not_negative(text)
