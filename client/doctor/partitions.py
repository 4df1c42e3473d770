"""Partitions that have no leader, and partitions with replicas out of sync."""

from __future__ import annotations

from odradek.client.doctor.finding import Finding, Severity
from odradek.client.errors import place_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse

_SHOWN = 5  # the most partitions in one finding


def check_partitions(metadata: MetadataResponse) -> list[Finding]:
    """Check for missing leaders, replicas out of sync, and topics with errors."""
    leaderless, lagging, findings = [], [], []
    count = 0
    for topic in metadata.topics:
        if topic.error_code:
            text = f"the broker returns {ErrorCode.of(topic.error_code).name}"
            findings.append(Finding(Severity.PROBLEM, f"topic {topic.name}", text, "See the broker's log"))
        for one in topic.partitions:
            count += 1
            place = place_of(topic.name, one.partition_index)
            if one.leader_id < 0:
                leaderless.append(f"{place} (replicas on {_brokers(one.replica_nodes)})")
            elif len(one.isr_nodes) < len(one.replica_nodes):
                behind = sorted(set(one.replica_nodes) - set(one.isr_nodes))
                lagging.append(f"{place} (not {_brokers(behind)})")
    if leaderless:
        cure = "Start the brokers that have these replicas, and look for disk errors in their logs"
        text = f"{_share(leaderless, count)} no leader: {_some(leaderless)}"
        findings.append(Finding(Severity.PROBLEM, "partitions", text, cure))
    if lagging:
        cure = "Start those brokers, or check why they are slow"
        text = f"{_share(lagging, count)} replicas out of sync: {_some(lagging)}"
        findings.append(Finding(Severity.WARNING, "partitions", text, cure))
    if not findings:
        which = "the only one has" if count == 1 else f"all {count} have"
        text = f"{which} a leader and all replicas in sync" if count else "there are none yet"
        findings.append(Finding(Severity.OK, "partitions", text))
    return findings


def _brokers(nodes: list[int]) -> str:
    return " and ".join(map(str, nodes))


def _share(places: list[str], count: int) -> str:
    return f"{len(places)} of {count} {'has' if len(places) == 1 else 'have'}"


def _some(places: list[str]) -> str:
    return ", ".join(places[:_SHOWN]) + (", …" if len(places) > _SHOWN else "")
