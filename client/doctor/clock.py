"""How far our clock and the cluster's are apart.

No call asks for the time. The leader of the metadata quorum tells when it was last caught up with itself, which is now
(DescribeQuorum, KIP-836): its clock, as of some moment between our question and its answer.
"""

from __future__ import annotations

import time

from odradek.client.doctor.finding import Finding, Severity
from odradek.client.errors import ClientError, UnsupportedVersionError
from odradek.client.network.connection import Connection
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)

_TOLERATED_MS = 1000
"""What clocks kept by NTP do not reach, and what nobody notices in a timestamp."""

_SUBJECT = "clock"


async def check_clock(connection: Connection) -> Finding:
    """Compare the clocks, as far as the broker tells its own."""
    request = DescribeQuorumRequest([RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
    requested = time.time_ns() // 1_000_000
    try:
        response = await connection.send(request, DescribeQuorumResponse)
    except UnsupportedVersionError:
        text = "not compared, since the broker serves no DescribeQuorum, by which it would tell its time"
        return Finding(Severity.NOTE, _SUBJECT, text, "--write compares it by a record")
    except ClientError as error:
        return Finding(Severity.NOTE, _SUBJECT, f"not compared ({error.cause})")
    answered = time.time_ns() // 1_000_000
    result = _leaders_time(response)
    if result is None:
        return Finding(Severity.NOTE, _SUBJECT, "not compared, since the quorum does not tell its leader's time")
    return compare("the controller's", result, requested, answered)


def compare(whose: str, result: int, requested: int, answered: int) -> Finding:
    """Hold a clock's time against ours before the question and after the answer; all in ms since the epoch."""
    difference = result - answered if result > answered else min(0, result - requested)
    if abs(difference) <= _TOLERATED_MS:
        within = max(abs(difference), answered - requested, 1)
        return Finding(Severity.OK, _SUBJECT, f"{whose} and ours agree to within {within} ms")
    order = "ahead of" if difference > 0 else "behind"
    return Finding(
        Severity.WARNING,
        _SUBJECT,
        f"{whose} is {abs(difference) / 1000:.1f} s {order} ours",
        "Have both machines keep their time by NTP: retention, and looking for records by time, go wrong",
    )


def _leaders_time(response: DescribeQuorumResponse) -> int | None:
    """The leader's clock in ms, or None if it is not told."""
    for topic in response.topics:
        for partition in topic.partitions:
            for voter in partition.current_voters:
                if voter.replica_id == partition.leader_id and voter.last_caught_up_timestamp > 0:
                    return voter.last_caught_up_timestamp
    return None
