"""The description of a cluster for people: topics, groups and the last requests. A failed test's report shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from odradek.client.admin.admin import Admin
from odradek.client.admin.arguments import OffsetSpec
from odradek.client.admin.results import TopicListing
from odradek.client.errors import ClientError
from odradek.client.record import TopicPartition
from odradek.testing.clients import Clients
from odradek.testing.cluster import Cluster
from odradek.testing.groups import group_lines

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

_SECONDS = 3.0
"""How long a description may take: a broker that does not answer is described as such."""


async def describe(clients: Clients, cluster: Cluster) -> str:
    """Return the text of the report. Never raises: what cannot be described is named with the reason."""
    return "\n".join([*await described(_contents(clients, cluster)), *cluster.report_lines()])


async def described(lines: Awaitable[list[str]]) -> list[str]:
    """Await lines for at most a few seconds; return the reason instead if there are none."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await lines
    except TimeoutError:
        return [f"the cluster did not answer within {_SECONDS:g} s"]
    except ClientError as error:
        return [f"the cluster cannot be described: {error.summary}"]


async def _contents(clients: Clients, cluster: Cluster) -> list[str]:
    admin = await clients.admin()
    lines = await cluster.mistakes(clients)
    for name, listing in (await admin.list_topics()).items():
        lines.append(await topic_line(admin, name, listing))
    for group in await admin.list_groups():
        lines += await group_lines(admin, group)
    return lines or ["no topics and no groups"]


async def topic_line(admin: Admin, name: str, listing: TopicListing) -> str:
    """Describe a topic: the first and the end offset of each partition. Raises ClientError."""
    partitions = [TopicPartition(name, index) for index in range(listing.partitions)]
    starts = await admin.list_offsets(dict.fromkeys(partitions, int(OffsetSpec.EARLIEST)))
    ends = await admin.list_offsets(dict.fromkeys(partitions, int(OffsetSpec.LATEST)))
    ranges = [
        f"{each.partition}: {starts.value(each).offset}–{ends.value(each).offset}"
        for each in partitions
        if each in starts.succeeded and each in ends.succeeded
    ]
    return f"topic {name}, offsets by partition: {', '.join(ranges)}"
