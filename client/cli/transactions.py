"""`odradek transactions list|describe|describe-producers|find-hanging|abort|fence`.

Flags and columns are those of Kafka's TransactionsCommand (kafka-transactions.sh); `fence` is its
forceTerminateTransaction.
"""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING

from odradek.client.cli import UsageError, fail
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import named, not_negative, number_of
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.arguments.times import now_ms
from odradek.client.cli.output.tables import Row, add_json_argument, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.results import HangingTransaction, ProducerDescription, TransactionDescription
    from odradek.client.record import TopicPartition

_ACTIONS = {
    "list": "List transactional ids",
    "describe": "Print the state of transactional ids, and the partitions of their open transactions",
    "describe-producers": "Print the idempotent and transactional producers of a partition",
    "find-hanging": "Find transactions that no coordinator will end",
    "abort": "Abort a hanging transaction in a partition, past its coordinator",
    "fence": "Abort the open transactions of transactional ids, and fence their producers",
}
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")
_MS_PER_MINUTE = 60_000


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for action in actions.values():
        add_connection_arguments(action)
    _add_list_arguments(actions["list"])
    for name in ("describe", "fence"):
        actions[name].add_argument(
            "--transactional-id", action="append", type=named, required=True, metavar="ID", help="repeatable"
        )
    for name in ("describe-producers", "abort"):
        actions[name].add_argument("--topic", type=named, required=True, help="the topic's name")
        actions[name].add_argument("--partition", type=not_negative, required=True, metavar="N")
    actions["describe-producers"].add_argument(
        "--broker-id", type=not_negative, metavar="ID", help="of the replica on this broker (default: of the leader)"
    )
    _add_search_arguments(actions["find-hanging"])
    _add_abort_arguments(actions["abort"])
    for name in ("list", "describe", "describe-producers", "find-hanging", "fence"):
        add_json_argument(actions[name])


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--duration-filter",
        type=number_of("milliseconds, such as 60000", 0),
        metavar="MS",
        help="leave out transactions that are open for less time",
    )
    parser.add_argument(
        "--transactional-id-pattern", metavar="REGEX", help="only ids that match as a whole (in the syntax of RE2)"
    )
    parser.add_argument("--state", action="append", default=[], choices=_STATES, help="only this state (repeatable)")
    parser.add_argument(
        "--producer-id", action="append", default=[], type=not_negative, metavar="ID", help="repeatable"
    )


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", type=named, help="search the partitions of this topic")
    parser.add_argument("--partition", type=not_negative, metavar="N", help="search this one of them")
    parser.add_argument(
        "--broker-id", type=not_negative, metavar="ID", help="search the partitions with a replica on this broker"
    )
    parser.add_argument(
        "--max-transaction-timeout",
        type=number_of("minutes, such as 15", 0),
        default=15,
        metavar="MINUTES",
        help="only transactions whose last record is older; that of the brokers (default: %(default)s)",
    )


def _add_abort_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--start-offset", type=not_negative, metavar="N", help="of the first record of the transaction")
    parser.add_argument(
        "--producer-id", type=not_negative, metavar="ID", help="instead of --start-offset, with both epochs"
    )
    parser.add_argument("--producer-epoch", type=not_negative, metavar="N", help="as describe-producers prints it")
    parser.add_argument("--coordinator-epoch", type=int, metavar="N", help="as describe-producers prints it, or -1")


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    if arguments.action == "find-hanging":
        if arguments.topic is None and arguments.broker_id is None:
            raise UsageError("find-hanging needs --topic or --broker-id, which limit the search")
        if arguments.topic is None and arguments.partition is not None:
            raise UsageError("--partition needs --topic")
    if arguments.action == "abort":
        epochs = (arguments.producer_id, arguments.producer_epoch, arguments.coordinator_epoch)
        if arguments.start_offset is None and None in epochs:
            raise UsageError("name --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch")
        if arguments.start_offset is not None and epochs != (None, None, None):
            raise UsageError("--start-offset excludes --producer-id, --producer-epoch and --coordinator-epoch")
    work = {
        "list": _list,
        "describe": _describe,
        "describe-producers": _describe_producers,
        "find-hanging": _find_hanging,
        "abort": _abort,
        "fence": _fence,
    }[arguments.action]
    return with_admin(arguments, work)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    listed = await admin.list_transactions(
        states=arguments.state,
        producer_ids=arguments.producer_id,
        longer_than_ms=arguments.duration_filter,
        pattern=arguments.transactional_id_pattern,
    )
    rows = [
        {
            "transactional_id": one.transactional_id,
            "coordinator": one.coordinator,
            "producer_id": one.producer_id,
            "transaction_state": one.state,
        }
        for one in listed.values()
    ]
    columns = ("transactional_id", "coordinator", "producer_id", "transaction_state")
    print_rows(columns, rows, as_json=arguments.json)
    return 0


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    described = await admin.describe_transactions(arguments.transactional_id)
    columns = (
        *("coordinator_id", "transactional_id", "producer_id", "producer_epoch", "transaction_state"),
        *("transaction_timeout_ms", "current_transaction_start_time_ms", "transaction_duration_ms"),
        "topic_partitions",
    )
    now = now_ms()
    print_rows(columns, [_described(one, now) for one in described.succeeded.values()], as_json=arguments.json)
    return await status_of(admin, described)


def _described(one: TransactionDescription, now: int) -> Row:
    return {
        "coordinator_id": one.coordinator,
        "transactional_id": one.transactional_id,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "transaction_state": one.state,
        "transaction_timeout_ms": one.timeout_ms,
        "current_transaction_start_time_ms": one.start_time,
        "transaction_duration_ms": None if one.start_time is None else now - one.start_time,
        "topic_partitions": [str(partition) for partition in one.partitions],
    }


async def _describe_producers(admin: Admin, arguments: argparse.Namespace) -> int:
    producers = await _producers(admin, arguments)
    columns = (
        *("producer_id", "producer_epoch", "latest_coordinator_epoch", "last_sequence", "last_timestamp"),
        "current_transaction_start_offset",
    )
    rows = [
        {
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "latest_coordinator_epoch": one.coordinator_epoch,
            "last_sequence": one.last_sequence,
            "last_timestamp": one.last_timestamp,
            "current_transaction_start_offset": one.transaction_start_offset,
        }
        for one in producers
    ]
    print_rows(columns, rows, as_json=arguments.json)
    return 0


async def _find_hanging(admin: Admin, arguments: argparse.Namespace) -> int:
    found = await admin.find_hanging_transactions(
        await _searched(admin, arguments),
        broker=arguments.broker_id,
        older_than_ms=arguments.max_transaction_timeout * _MS_PER_MINUTE,
    )
    now = now_ms()
    columns = (
        *("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset"),
        *("last_timestamp", "duration_min", "transactional_id"),
    )
    rows = [_hanging(one, now) for hanging in found.succeeded.values() for one in hanging]
    print_rows(columns, rows, as_json=arguments.json)
    return await status_of(admin, found)


async def _searched(admin: Admin, arguments: argparse.Namespace) -> list[TopicPartition] | None:
    """The partitions that the flags name; None: all with a replica on the broker."""
    from odradek.client.record import TopicPartition

    if arguments.topic is None:
        return None
    if arguments.partition is not None:
        return [TopicPartition(arguments.topic, arguments.partition)]
    described = (await admin.describe_topics([arguments.topic])).value(arguments.topic)
    return [
        TopicPartition(described.name, one.partition)
        for one in described.partitions
        if arguments.broker_id is None or arguments.broker_id in one.replicas
    ]


def _hanging(one: HangingTransaction, now: int) -> Row:
    producer = one.producer
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.transaction_start_offset,
        "last_timestamp": producer.last_timestamp,
        "duration_min": (now - producer.last_timestamp) // _MS_PER_MINUTE,
        "transactional_id": one.transactional_id,
    }


async def _abort(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.results import ProducerDescription

    partition = (arguments.topic, arguments.partition)
    if arguments.start_offset is None:
        epoch = arguments.coordinator_epoch
        producer = ProducerDescription(
            arguments.producer_id, arguments.producer_epoch, coordinator_epoch=epoch if epoch >= 0 else None
        )
    else:
        start = arguments.start_offset
        there = [one for one in await _producers(admin, arguments) if one.transaction_start_offset == start]
        if not there:
            place = "-".join(map(str, partition))
            return fail(ValueError(f"no open transaction of {place} begins at offset {start}"))
        producer = there[0]
    await admin.abort_transaction(partition, producer)
    print(f"the transaction of producer {producer.producer_id} in {arguments.topic}-{arguments.partition} is aborted")
    return 0


async def _producers(admin: Admin, arguments: argparse.Namespace) -> Sequence[ProducerDescription]:
    """The producers of the partition that the flags name. Raises ClientError."""
    from odradek.client.record import TopicPartition

    partition = TopicPartition(arguments.topic, arguments.partition)
    broker = arguments.broker_id if arguments.action == "describe-producers" else None
    return (await admin.describe_producers([partition], broker=broker)).value(partition)


async def _fence(admin: Admin, arguments: argparse.Namespace) -> int:
    fenced = await admin.fence_producers(arguments.transactional_id)
    rows = [
        {"transactional_id": name, "producer_id": one.producer_id, "producer_epoch": one.producer_epoch}
        for name, one in fenced.succeeded.items()
    ]
    print_rows(("transactional_id", "producer_id", "producer_epoch"), rows, as_json=arguments.json)
    return await status_of(admin, fenced)
