"""The clients of a run: they write, read, commit offsets, and create and delete topics until they are told to stop.

| client | what it does |
|---|---|
| writer, one for each partition | is an idempotent producer with acks=all, and repeats a batch until it is answered |
| reader, one for each partition | fetches on and on, and sometimes again from the beginning |
| transactional producers, a reader of committed records | see `transactions` |
| members of one group | own its partitions in turn, and commit (`members`): of one protocol in a run |
| committer | commits a growing offset, and fetches it |
| remaker | does so at once, in some runs (`remakes`) |
| administrator | creates a topic, has it written, deletes it, and creates it again under the same name |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
from typing import Any, Final

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
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
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import iter_records
from tests.simulation.client import Client, only
from tests.simulation.history import GroupHistory, History, Partition
from tests.simulation.members import GroupMember
from tests.simulation.owned_group import LATEST, OwnedGroup
from tests.simulation.transactions import CommittedReader, TransactionalProducer

PARTITION_BYTES: Final = 8 * 1024
"""Far below the 32 KiB from which a broker sends slices of files, which the simulated network cannot."""

_ACKS_ALL: Final = -1
_FATAL: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
"""Errors that a producer with one batch in flight must not see."""

NewClient = Callable[[str], Client]


class Workload:
    """The tasks of all clients. `stop` ends them at their next pause."""

    def __init__(self, history: History, new_client: NewClient, fail: Callable[[str], None]) -> None:
        self.history = history
        self.is_over = False
        self.acknowledged = 0
        self._new_client = new_client
        self.fail = fail
        self._tasks: list[asyncio.Task[None]] = []
        self._values = count()
        self._producers: list[TransactionalProducer] = []

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(f"a client failed: {error!r}")

    async def acknowledges_more(self, than: int, seconds: float) -> bool:
        """Return whether a write is acknowledged before the time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self.acknowledged <= than and loop.time() < end:  # noqa: ASYNC110 - in virtual time it costs nothing
            await asyncio.sleep(0.2)
        return self.acknowledged > than

    async def stop(self) -> None:
        """End the clients; what they have in flight stays unknown."""
        self.is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---------------------------------------------------------------------------------------------------------- topics

    async def create(self, name: str, partitions: int, **configs: str) -> bytes:
        """Create a topic, whatever it takes, and return its id."""
        client = self._new_client("creator")
        properties = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        request = CreateTopicsRequest([CreatableTopic(name, partitions, -1, configs=properties)], 2000)
        while True:
            answer = await client.ask(client.any_node(), request, CreateTopicsResponse)
            row = None if answer is None else only(answer.topics)
            if row is not None and row.error_code == ErrorCode.NONE:
                self.history.created(row.topic_id, name, partitions)
                client.close()
                return bytes(row.topic_id)
            if row is not None and row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                found = await self._find(client, name)
                if found is not None:
                    self.history.created(found, name, partitions)
                    client.close()
                    return found
            await client.pause(0.3)

    async def _find(self, client: Client, name: str) -> bytes | None:
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        answer = await client.ask(client.any_node(), request, MetadataResponse, version=12)
        row = None if answer is None else only(answer.topics)
        return None if row is None or row.error_code or row.topic_id in self.history.deleted else bytes(row.topic_id)

    async def administrate(self, name: str) -> None:
        """Create and delete a topic of one name again and again."""
        client = self._new_client("administrator")
        while not self.is_over:
            topic_id = await self.create(name, 1)
            writing = asyncio.get_running_loop().create_task(self.write((topic_id, 0), 0.2))
            await client.pause(4.0)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await self.delete(client, topic_id)
            await client.pause(1.0)

    async def delete(self, client: Client, topic_id: bytes) -> None:
        """Delete a topic, whatever it takes."""
        request = DeleteTopicsRequest([DeleteTopicState(None, topic_id)], timeout_ms=2000)
        while topic_id not in self.history.deleted:
            answer = await client.ask(client.any_node(), request, DeleteTopicsResponse)
            row = None if answer is None else only(answer.responses)
            if row is not None and row.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
                if row.error_code == ErrorCode.NONE:
                    self.history.deleted.add(topic_id)
                break
            await client.pause(0.3)

    # --------------------------------------------------------------------------------------------------------- writing

    async def write(self, partition: Partition, pause: float = 0.4) -> None:
        """Write batches; each is repeated, byte for byte, until its outcome is known."""
        client = self._new_client(f"writer-{partition[1]}")
        producer_id = await self._producer_id(client)
        sequence = 0
        while not self.is_over:
            values = [b"%d" % next(self._values) for _ in range(client.draw.randint(1, 3))]
            self.history.writing(partition, values)
            batch = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
            for value in values:
                batch.append(client.now_ms(), None, value)
            offset = await self._write_until_known(client, partition, bytes(batch.build()))
            if offset is None:
                return
            self.history.acknowledge(partition, offset, values)
            self.acknowledged += 1
            sequence += len(values)
            await client.pause(pause)

    async def _producer_id(self, client: Client) -> int:
        while True:
            answer = await client.ask(client.any_node(), InitProducerIdRequest(None), InitProducerIdResponse)
            if answer is not None and answer.error_code == ErrorCode.NONE:
                return answer.producer_id
            await client.pause(0.3)

    async def _write_until_known(self, client: Client, partition: Partition, batch: bytes) -> int | None:
        """Send a batch until it is acknowledged; return its offset, None if the topic is gone."""
        topic_id, index = partition
        data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index, batch)])
        request = ProduceRequest(acks=_ACKS_ALL, timeout_ms=1500, topic_data=[data])
        while True:
            leader = await client.leader(*partition)
            if leader is not None:
                answer = await client.ask(leader.node_id, request, ProduceResponse)
                row = None if answer is None else only(only(answer.responses).partition_responses)
                if row is not None and row.error_code == ErrorCode.NONE:
                    return int(row.base_offset)
                client.forget_leader(*partition)
                if row is not None and row.error_code in _FATAL:
                    self.fail(f"producer of {self.history.names[topic_id]}-{index}: {ErrorCode(row.error_code).name}")
                    return None
            await client.pause(0.2)

    # --------------------------------------------------------------------------------------------------------- reading

    async def read(self, partition: Partition) -> None:
        """Read, and sometimes begin again."""
        client = self._new_client(f"reader-{partition[1]}")
        offset = 0
        while not self.is_over:
            after = await self.read_once(client, partition, offset)
            if after == offset:
                await client.pause(0.5)
            offset = 0 if client.draw.random() < 0.03 else after

    async def read_once(self, client: Client, partition: Partition, offset: int) -> int:
        """Send one Fetch to the leader; return the offset of the next one, the same without records."""
        topic_id, index = partition
        leader = await client.leader(*partition)
        if leader is None:
            return offset
        wanted = FetchPartition(index, leader.epoch, offset, partition_max_bytes=PARTITION_BYTES)
        request = FetchRequest(
            max_wait_ms=200, min_bytes=1, topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])]
        )
        known = self.history.partitions[partition].next_read
        acknowledged = self.history.partitions[partition].acknowledged_end
        answer = await client.ask(leader.node_id, request, FetchResponse)
        if answer is None or answer.error_code or not answer.responses:
            client.forget_leader(*partition)
            return offset
        row = only(only(answer.responses).partitions)
        if row.error_code:
            client.forget_leader(*partition)
            if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and (offset <= known or offset < acknowledged):
                self.history.out_of_range(partition, offset)
            return offset
        return self.history.read(partition, offset, _records(row.records))

    # ---------------------------------------------------------------------------------------------------- transactions

    def start_transactions(self, name: str, partitions: Sequence[Partition], versions: Sequence[int]) -> None:
        """Start a transactional producer for each version of the protocol, and a reader of committed records."""
        history, numbers = self.history.transactions, count()
        for number, version in enumerate(versions):
            client = self._new_client(f"transactional-{number}")
            producer = TransactionalProducer(client, history, (name, partitions), numbers, version, self.fail)
            self._producers.append(producer)
            self.start(producer.run(lambda: self.is_over))
        reader = CommittedReader(self._new_client("committed-reader"), history, partitions)
        self.start(reader.run(lambda: self.is_over))

    async def transactions_commit(self, seconds: float) -> bool:
        """Return whether a transaction is committed before the time is over."""
        before, end = self.history.transactions.committed, asyncio.get_running_loop().time() + seconds
        while self.history.transactions.committed == before:
            if asyncio.get_running_loop().time() >= end:
                break
            await asyncio.sleep(0.2)
        return self.history.transactions.committed > before

    async def abort_transactions(self) -> None:
        """Abort what the producers left open, as their next incarnations do."""
        for producer in self._producers:
            await producer.initialize()

    async def check_transactions(self, ends: Mapping[Partition, int]) -> None:
        """Read all committed records up to the ends (exclusive) of the partitions, and the groups of the producers."""
        history = self.history.transactions
        reader = CommittedReader(self._new_client("checker"), history, tuple(ends))
        for partition, end in ends.items():
            await reader.read_all(partition, end)
        reader.client.close()
        history.check_whole()
        for producer in self._producers:
            history.found_offset(producer.name, await producer.fetch_offset())

    # ---------------------------------------------------------------------------------------------------------- groups

    def start_members(self, name: str, count: int, protocol: type[GroupMember], topic: tuple[str, bytes, int]) -> None:
        group = self.history.owned_groups[name] = OwnedGroup(name, self.fail)
        for number in range(count):
            client = self._new_client(f"member-{number}")
            self.start(protocol(client, group, topic, lambda: self.is_over).run())

    async def members_commit(self, seconds: float) -> bool:
        """Return whether members of every group commit before the time is over."""
        groups = self.history.owned_groups.values()
        before = {group.name: group.commits for group in groups}
        end = asyncio.get_running_loop().time() + seconds
        while not (done := all(group.commits > before[group.name] for group in groups)):
            if asyncio.get_running_loop().time() >= end:
                break
            await asyncio.sleep(0.2)
        return done

    async def commit(self, group: str, topic_id: bytes, topic: str) -> None:
        """Commit 0, 1, 2 and so on, and check what the group has."""
        client = self._new_client(f"committer-{group}")
        history = self.history.groups.setdefault(group, GroupHistory())
        coordinator: int | None = None
        for offset in count():
            if self.is_over:
                return
            done = False
            while not done:
                coordinator = coordinator if coordinator is not None else await self.coordinator(client, group)
                if coordinator is None:
                    await client.pause(0.3)
                    continue
                rows = [OffsetCommitRequestPartition(0, offset)]
                request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, topic_id, rows)])
                answer = await client.ask(coordinator, request, OffsetCommitResponse, version=9)
                row = None if answer is None else only(only(answer.topics).partitions)
                done = row is not None and row.error_code == ErrorCode.NONE
                if not done:
                    history.unknown.add(offset)  # it may still be written, even late
                    coordinator = None
                    await client.pause(0.3)
            history.acknowledged = offset
            if client.draw.random() < 0.5 and coordinator is not None:
                await self.check_group(client, coordinator, group, topic)
            await client.pause(0.8)

    async def coordinator(self, client: Client, group: str) -> int | None:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        answer = await client.ask(client.any_node(), request, FindCoordinatorResponse)
        row = None if answer is None else only(answer.coordinators)
        return None if row is None or row.error_code else int(row.node_id)

    async def check_group(self, client: Client, coordinator: int, group: str, topic: str) -> bool:
        """Fetch the group's offset, and compare; return False if it was not answered."""
        least = self.history.groups[group].acknowledged
        wanted = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])])
        answer = await client.ask(coordinator, OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse, version=9)
        row = None if answer is None else only(answer.groups)
        if row is None or row.error_code:
            return False
        found = only(only(row.topics).partitions)
        if found.error_code:
            return False
        self.history.found_group_offset(group, least, found.committed_offset)
        return True

    async def check_groups_again(self, topic: str) -> None:
        """Check every group; return when each has been answered."""
        client = self._new_client("checker")
        for group in self.history.groups:
            coordinator = await self.coordinator(client, group)
            while coordinator is None or not await self.check_group(client, coordinator, group, topic):
                await client.pause(0.3)
                coordinator = await self.coordinator(client, group)
        for owned in self.history.owned_groups.values():
            while not await self._check_owned(client, owned, topic):
                await client.pause(0.3)
        client.close()

    async def _check_owned(self, client: Client, group: OwnedGroup, topic: str) -> bool:
        """Fetch all offsets of a group, and compare; return False if it was not answered."""
        coordinator = await self.coordinator(client, group.name)
        indexes = sorted(group.partitions)
        if coordinator is None or not indexes:
            return not indexes
        wanted = OffsetFetchRequestGroup(
            group.name, topics=[OffsetFetchRequestTopics(topic, partition_indexes=indexes)]
        )
        answer = await client.ask(coordinator, OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse, version=9)
        row = None if answer is None else only(answer.groups)
        if row is None or row.error_code or any(each.error_code for each in only(row.topics).partitions):
            return False
        for each in only(row.topics).partitions:
            group.fetched(each.partition_index, LATEST, each.committed_offset, group.least(LATEST))
        return True


def _records(data: Any) -> list[tuple[int, bytes]]:
    """Return offset and value of each record; the last batch may be cut off."""
    if not data:
        return []
    found = []
    for position, header in batch_headers(data):
        found += [(record.offset, record.value or b"") for record in iter_records(data, position, header)]
    return found
