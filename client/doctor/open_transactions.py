"""Open transactions: each partition whose last stable offset is held back, and the transaction that holds it.

Readers of committed records get nothing from the last stable offset on, where the oldest open transaction of the
partition begins. Its coordinator ends the transaction after its timeout at the latest, unless it hangs: then no
coordinator has it, and only an operator ends it.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from odradek.client.admin.admin import Admin
from odradek.client.admin.arguments import OffsetSpec
from odradek.client.admin.results import HangingTransaction, TransactionDescription
from odradek.client.config import Address
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.errors import ClientError
from odradek.client.network.transport import Network
from odradek.client.record import TopicPartition
from odradek.client.security.settings import SecurityKeywords
from odradek.protocol.plural import pluralize

_SUBJECT = "transactions"
_LONG_MS = 60_000  # the default of transaction.timeout.ms; below, a transaction is nothing unusual
_SHOWN = 5  # the most partitions in one finding

Held = Mapping[TopicPartition, tuple[int, int]]
"""Last stable offset and end, both of the next record, of partitions where they differ."""


async def check_open_transactions(
    servers: Sequence[Address], network: Network, seconds: float, settings: SecurityKeywords
) -> list[Finding]:
    """Check every partition, each step within `seconds`."""
    bootstrap = [str(server) for server in servers]
    try:
        async with Admin(bootstrap, default_api_timeout_ms=int(seconds * 1000), network=network, **settings) as admin:
            held = await _held_partitions(admin)
            findings = await _holders(admin, held, bootstrap) if held else []
    except ClientError as error:
        return [Finding(Severity.WARNING, _SUBJECT, f"{error.tried}: {error.cause}", error.cure)]
    return findings or [Finding(Severity.OK, _SUBJECT, "none holds back readers of committed records")]


async def _held_partitions(admin: Admin) -> Held:
    topics = await admin.describe_topics(await admin.list_topics(include_internal=True))
    latest = {
        TopicPartition(topic.name, one.partition): int(OffsetSpec.LATEST)
        for topic in topics.succeeded.values()
        for one in topic.partitions
        if one.leader is not None
    }
    stable = (await admin.list_offsets(latest, isolation_level="read_committed")).succeeded
    ends = (await admin.list_offsets(latest)).succeeded
    return {
        partition: (at.offset, ends[partition].offset)
        for partition, at in stable.items()
        if partition in ends and at.offset < ends[partition].offset
    }


async def _holders(admin: Admin, held: Held, bootstrap: Sequence[str]) -> list[Finding]:
    described = (await admin.describe_producers(held)).succeeded
    holders = {
        one.producer_id
        for partition, producers in described.items()
        for one in producers
        if one.transaction_start_offset == held[partition][0]
    }
    if not holders:
        return []  # all have ended meanwhile
    listed = await admin.list_transactions(producer_ids=sorted(holders))
    known = (await admin.describe_transactions(listed)).succeeded.values()
    at = f"--bootstrap-server {','.join(bootstrap)}"
    findings = [finding_of_known(one, partitions, at) for one in known if (partitions := _held_by(one, held))]
    hanging = (await admin.find_hanging_transactions(held, older_than_ms=-1)).succeeded
    return findings + [
        _hanging(one, at)
        for partition, found in hanging.items()
        for one in found
        if one.producer.transaction_start_offset == held[partition][0]
    ]


def _held_by(transaction: TransactionDescription, held: Held) -> Held:
    return {partition: held[partition] for partition in transaction.partitions if partition in held}


def finding_of_known(transaction: TransactionDescription, held: Held, at: str) -> Finding:
    """The finding about a transaction that its coordinator has; `at` is the flag with the cluster's address."""
    name = transaction.transactional_id
    started = transaction.start_time or 0
    is_long = time.time_ns() // 1_000_000 - started > _LONG_MS
    text = (
        f"open since {_time(started)} (state {transaction.state}, producer id {transaction.producer_id}, epoch"
        f" {transaction.producer_epoch}, timeout {transaction.timeout_ms} ms, coordinator broker"
        f" {transaction.coordinator}); readers of committed records wait for it: {_places(held)}"
    )
    cure = f"Its program ends it, or: odradek transactions fence {at} --transactional-id {shlex.quote(name)}"
    return Finding(Severity.WARNING if is_long else Severity.NOTE, f"transaction {name}", text, cure)


def _hanging(transaction: HangingTransaction, at: str) -> Finding:
    partition, producer = transaction.partition, transaction.producer
    text = (
        f"a transaction hangs from offset {producer.transaction_start_offset} on (producer id {producer.producer_id},"
        f" epoch {producer.producer_epoch}, transactional id {transaction.transactional_id or 'unknown'}, last record"
        f" of {_time(producer.last_timestamp)}): no coordinator ends it, and readers of committed records get nothing"
    )
    cure = (
        f"Abort it: odradek transactions abort {at} --topic {partition.topic} --partition {partition.partition}"
        f" --start-offset {producer.transaction_start_offset}"
    )
    return Finding(Severity.PROBLEM, str(partition), text, cure)


def _places(held: Held) -> str:
    return _some(
        f"{partition} at offset {stable} of {end}, {pluralize(end - stable, 'offset')} behind"
        for partition, (stable, end) in held.items()
    )


def _some(places: Iterable[str]) -> str:
    shown = list(places)
    return "; ".join(shown[:_SHOWN]) + ("; …" if len(shown) > _SHOWN else "")


def _time(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms since the epoch"
