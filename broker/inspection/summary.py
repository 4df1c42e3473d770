"""`inspect DIR`: a row for each partition, and the repairs that a broker would make at its start.

It takes as long as a start: the end of the log is recovered if necessary, otherwise only small files, indexes and a few
batches of each segment are read. `verify` finds damage in the middle of a log.
"""

from __future__ import annotations

from typing import TextIO

import msgspec

from odradek.argument_parser import nearest
from odradek.broker.inspection.findings import Findings, collected
from odradek.broker.inspection.open_transactions import (
    TRANSACTION_STATE,
    OpenTransaction,
    print_open_transactions,
    read_open_transactions,
)
from odradek.broker.inspection.samples import Samples
from odradek.broker.inspection.text import print_table, size_text, time_text
from odradek.broker.storage import StoredLogDir, StoredPartition, open_log_dir
from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.offline.listing import NoLogDirError
from odradek.protocol.errors import KafkaError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import NO_TIMESTAMP
from odradek.protocol.uuids import uuid_to_text

_TITLES = (
    "partition", "segments", "size", "start offset", "end offset", "from", "to", "codecs", "ratio", "findings",
)  # fmt: skip


CommittedOffsets = dict[str, dict[str, int]]
"""The offset of each partition, by group."""

_INTERNAL = ("__consumer_offsets", TRANSACTION_STATE)


class PartitionSummary(msgspec.Struct, kw_only=True):
    """One partition. Times in milliseconds since 1970, -1 without records; the end offset is exclusive."""

    topic: str
    partition: int
    topic_id: str
    segments: int
    size_bytes: int
    log_start_offset: int
    log_end_offset: int
    first_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP
    codecs: list[str] = []
    compression_ratio: float | None = None
    sampled_batches: int = 0
    producers: int
    findings: list[str] = []


class DirectorySummary(msgspec.Struct, kw_only=True):
    """A log directory; `findings` are those that name none of the partitions.

    `unreadable` counts what cannot be read: partitions, the committed offsets, the open transactions.
    """

    path: str
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None
    clean_shutdown: bool
    size_bytes: int
    committed_offsets: CommittedOffsets
    open_transactions: list[OpenTransaction]
    partitions: list[PartitionSummary]
    findings: list[str]
    unreadable: int


def summarize(path: str, topic: str | None = None) -> DirectorySummary:
    """Summarize the directory, or one topic of it.

    Raises as `open_log_dir`, and `OSError` if it is no log directory, or has no such topic.
    """
    with collected() as findings, open_log_dir(path) as log_dir:
        if log_dir.meta is None and not log_dir.partitions:
            raise NoLogDirError(path)
        topics = log_dir.topics()
        if topic is not None and topic not in topics:
            near = nearest(topic, topics)
            raise FileNotFoundError(f"there is no topic {topic} in {path}{f'; {near}' if near else ''}")
        partitions = [
            _partition(partition, findings)
            for partition in log_dir.partitions.values()
            if topic is None or partition.topic == topic
        ]
        committed = _committed(log_dir, findings)
        transactions = _open_transactions(log_dir, findings)
        if topic is not None:
            names = {f"{each.topic}-{each.partition}" for each in partitions}
            committed = _of_topic(committed, names)
            transactions = [each for each in transactions if names.intersection(each.partitions)]
        listed = {line for partition in partitions for line in partition.findings}
        meta = log_dir.meta
        return DirectorySummary(
            path=path,
            node_id=meta.node_id if meta else None,
            cluster_id=meta.cluster_id if meta else None,
            directory_id=meta.directory_id if meta else None,
            clean_shutdown=log_dir.was_clean,
            size_bytes=sum(partition.size_bytes for partition in partitions),
            committed_offsets=committed,
            open_transactions=transactions,
            partitions=partitions,
            findings=[line for line in findings.lines if line not in listed],
            unreadable=findings.unreadable,
        )


def _partition(partition: StoredPartition, findings: Findings) -> PartitionSummary:
    summary = PartitionSummary(
        topic=partition.topic,
        partition=partition.partition,
        topic_id=uuid_to_text(partition.topic_id),
        segments=len(partition.segments),
        size_bytes=partition.size_bytes,
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        producers=len(partition.producers),
    )
    wrong = []
    try:
        samples = Samples(partition)
        summary.codecs = sorted(codec.name.lower() for codec in samples.codecs)
        summary.compression_ratio = None if samples.ratio is None else round(samples.ratio, 2)
        summary.sampled_batches = samples.batches
        summary.first_timestamp = samples.first_timestamp
        largest = partition.max_timestamp_offset()
        summary.max_timestamp = largest.timestamp if largest else NO_TIMESTAMP
    except (CorruptBatchError, KafkaError, RemoteProtocolError, ValueError) as error:
        findings.unreadable += 1
        wrong.append(str(error))
    summary.findings = findings.about(partition.directory) + wrong
    return summary


def _committed(log_dir: StoredLogDir, findings: Findings) -> CommittedOffsets:
    try:
        committed = log_dir.committed_offsets()
    except (CorruptBatchError, KafkaError, RemoteProtocolError) as error:
        findings.cannot_read(f"committed offsets cannot be read: {error}")
        return {}
    return {
        group: {f"{topic}-{partition}": each.offset for (topic, partition), each in sorted(offsets.items())}
        for group, offsets in committed.items()
    }


def _of_topic(committed: CommittedOffsets, partitions: set[str]) -> CommittedOffsets:
    """Return the offsets of these partitions, without groups that have none."""
    chosen = {
        group: {name: offset for name, offset in offsets.items() if name in partitions}
        for group, offsets in committed.items()
    }
    return {group: offsets for group, offsets in chosen.items() if offsets}


def _open_transactions(log_dir: StoredLogDir, findings: Findings) -> list[OpenTransaction]:
    try:
        transactions, unreadable = read_open_transactions(log_dir.topics())
    except (CorruptBatchError, KafkaError, RemoteProtocolError) as error:
        findings.cannot_read(f"open transactions cannot be read: {error}")
        return []
    for line in unreadable:
        findings.cannot_read(line)
    return transactions


def _is_hidden(partition: PartitionSummary) -> bool:
    """Return whether a partition is left out unless all are wanted: internal or empty, and sound."""
    is_empty = partition.log_start_offset == partition.log_end_offset
    return (is_empty or partition.topic in _INTERNAL) and not partition.findings


def print_summary(out: TextIO, summary: DirectorySummary, *, is_whole: bool) -> None:
    """Print a summary as text; unless `is_whole`, without sound partitions that are internal or empty."""
    owner = "of nobody" if summary.node_id is None else f"of node {summary.node_id}, cluster {summary.cluster_id}"
    stop = "a clean stop" if summary.clean_shutdown else "no clean stop"
    topics = pluralize(len({each.topic for each in summary.partitions}), "topic")
    held = f"{topics}, {pluralize(len(summary.partitions), 'partition')}, {size_text(summary.size_bytes)}"
    out.write(f"{summary.path}: {owner}; {held} after {stop}\n\n")
    rows = [
        (
            f"{each.topic}-{each.partition}",
            each.segments,
            size_text(each.size_bytes),
            each.log_start_offset,
            each.log_end_offset,
            time_text(each.first_timestamp),
            time_text(each.max_timestamp),
            ",".join(each.codecs) or "-",
            "-" if each.compression_ratio is None else f"{each.compression_ratio:.2f}",
            len(each.findings),
        )
        for each in summary.partitions
        if is_whole or not _is_hidden(each)
    ]
    print_table(out, _TITLES, rows)
    if hidden := len(summary.partitions) - len(rows):
        out.write(
            f"\n{pluralize(hidden, 'partition is', 'partitions are')} not shown: empty, or of internal topics;"
            " --all shows all\n"
        )
    if summary.committed_offsets:
        out.write("\n")
        rows_of_groups = [
            (group, partition, offset)
            for group, offsets in summary.committed_offsets.items()
            for partition, offset in offsets.items()
        ]
        print_table(out, ("group", "partition", "committed offset"), rows_of_groups)
    if summary.open_transactions:
        out.write("\n")
        print_open_transactions(out, summary.open_transactions)
    lines = [line for each in summary.partitions for line in each.findings] + summary.findings
    if lines:
        out.write("\nA broker that starts here would log:\n" + "".join(f"  {line}\n" for line in lines))
