"""A client that makes one topic again and again, and looks for what it has inherited from the one before.

```
create ─► no committed offset? ─► write ─► read all ─► delete records ─► commit ─► … ─► read all ─► delete ─► create
```

What it does makes every value that is stored under a name differ from that of a new topic: start, recovery point and
high watermark of the log, and a group's offset. It creates the topic again at once. In a quarter of the seeds it runs
beside the other clients, and brokers are killed more often: at any moment of a topic's life.
"""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import Final

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.simulation.client import Client, only
from tests.simulation.history import Partition
from tests.simulation.workload import Workload

REMADE: Final = "remade"
PROPERTIES: Final = {"log.flush.start.offset.checkpoint.interval.ms": "3000"}
"""Those of the brokers of such a seed."""
_SHARE = 0.25
_NO_OFFSET = -1
_WRITE_PAUSE = 0.05
_MOST_ROUNDS = 3


def has_remakes(seed: int) -> bool:
    """Return whether the topic is made again and again in the run of a seed."""
    return random.Random(f"remakes {seed}").random() < _SHARE


class Remaker:
    """The client, and the group that is named as the topic."""

    def __init__(self, workload: Workload, client: Client) -> None:
        self._workload = workload
        self._client = client
        self._offsets = count(1000)  # of the group; far above those of the records
        self._committed: dict[bytes, set[int]] = {}  # by topic id; they may have been refused

    async def run(self) -> None:
        while not self._workload.is_over:
            topic_id = await self._workload.create(REMADE, 1)
            self._committed.setdefault(topic_id, set())
            await self._check_group(topic_id)
            writing = asyncio.get_running_loop().create_task(self._workload.write((topic_id, 0), _WRITE_PAUSE))
            for _ in range(self._client.draw.randint(1, _MOST_ROUNDS)):
                await self._client.pause(1.0)
                await self._read((topic_id, 0))
                await self._delete_records((topic_id, 0))
                await self._commit(topic_id)
                await self._check_group(topic_id)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await self._read((topic_id, 0))
            await self._workload.delete(self._client, topic_id)

    async def _read(self, partition: Partition) -> None:
        """Read what is acknowledged by now, from the first record that was not deleted."""
        history = self._workload.history.partitions[partition]
        offset, end = history.start, history.acknowledged_end
        while offset < end and not self._workload.is_over:
            after = await self._workload.read_once(self._client, partition, offset)
            if after == offset:
                await self._client.pause(0.3)
            offset = after

    async def _delete_records(self, partition: Partition) -> None:
        """Delete some of the acknowledged records; it does not matter whether that is answered."""
        history = self._workload.history.partitions[partition]
        history.start = self._client.draw.randint(history.start, max(history.start, history.acknowledged_end))
        leader = await self._client.leader(*partition)
        if leader is None:
            return
        rows = [DeleteRecordsPartition(partition[1], history.start)]
        request = DeleteRecordsRequest([DeleteRecordsTopic(REMADE, rows)], timeout_ms=1000)
        answer = await self._client.ask(leader.node_id, request, DeleteRecordsResponse)
        if answer is None or only(only(answer.topics).partitions).error_code != ErrorCode.NONE:
            self._client.forget_leader(*partition)

    async def _commit(self, topic_id: bytes) -> None:
        coordinator = await self._workload.coordinator(self._client, REMADE)
        if coordinator is None:
            return
        offset = next(self._offsets)
        self._committed[topic_id].add(offset)
        topic = OffsetCommitRequestTopic("", topic_id, [OffsetCommitRequestPartition(0, offset)])
        await self._client.ask(coordinator, OffsetCommitRequest(REMADE, topics=[topic]), OffsetCommitResponse)

    async def _check_group(self, topic_id: bytes) -> None:
        """Fetch the offset by name, at a broker that knows the living topic."""
        client, coordinator = self._client, await self._workload.coordinator(self._client, REMADE)
        if coordinator is None:
            return
        asked = MetadataRequest([MetadataRequestTopic(name=REMADE)], allow_auto_topic_creation=False)
        known = await client.ask(coordinator, asked, MetadataResponse, version=12)
        if known is None or only(known.topics).topic_id != topic_id:
            return
        wanted = OffsetFetchRequestGroup(REMADE, topics=[OffsetFetchRequestTopics(REMADE, partition_indexes=[0])])
        answer = await client.ask(coordinator, OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse, version=9)
        group = None if answer is None else only(answer.groups)
        if group is None or group.error_code:
            return
        row = only(only(group.topics).partitions)
        if row.error_code == ErrorCode.NONE and row.committed_offset not in {_NO_OFFSET, *self._committed[topic_id]}:
            self._workload.fail(f"group {REMADE} has {row.committed_offset} of an older topic")
