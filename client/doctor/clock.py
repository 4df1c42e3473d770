"""The difference between our clock and the cluster's.

No request returns the time. But the leader of the metadata quorum reports when it was last caught up with itself, which
is always now (DescribeQuorum, KIP-836): the time of its clock, between our request and its response.
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
"""A difference that clocks with NTP do not reach, and that hardly matters in a timestamp."""

_SUBJECT = "clock"


async def check_clock(connection: Connection) -> Finding:
    """Compare the clocks, if the broker reports its time."""
    request = DescribeQuorumRequest([RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
    before = time.time_ns() // 1_000_000
    try:
        response = await connection.send(request, DescribeQuorumResponse)
    except UnsupportedVersionError:
        text = "not compared: the broker does not serve DescribeQuorum, which would report its time"
        return Finding(Severity.NOTE, _SUBJECT, text, "With --write the timestamp of a record is compared")
    except ClientError as error:
        return Finding(Severity.NOTE, _SUBJECT, f"not compared ({error.cause})")
    after = time.time_ns() // 1_000_000
    theirs = _leaders_time(response)
    if theirs is None:
        return Finding(Severity.NOTE, _SUBJECT, "not compared: the quorum does not report its leader's time")
    return compare("the controller's", theirs, before, after)


def compare(whose: str, theirs: int, before: int, after: int) -> Finding:
    """Compare another clock with ours before the request and after the response; all in ms since the epoch."""
    difference = theirs - after if theirs > after else min(0, theirs - before)
    if abs(difference) <= _TOLERATED_MS:
        within = max(abs(difference), after - before, 1)
        return Finding(Severity.OK, _SUBJECT, f"{whose} and ours agree to within {within} ms")
    order = "ahead of" if difference > 0 else "behind"
    return Finding(
        Severity.WARNING,
        _SUBJECT,
        f"{whose} is {abs(difference) / 1000:.1f} s {order} ours",
        "Use NTP on both machines: otherwise retention and searches by time are wrong",
    )


def _leaders_time(response: DescribeQuorumResponse) -> int | None:
    """The leader's clock in ms, or None if it is not reported."""
    for topic in response.topics:
        for partition in topic.partitions:
            for voter in partition.current_voters:
                if voter.replica_id == partition.leader_id and voter.last_caught_up_timestamp > 0:
                    return voter.last_caught_up_timestamp
    return None
