"""Brokers in memory, for the simulated side of the client's Network seam (`scripted_network`).

A broker serves ApiVersions, Metadata, InitProducerId, Produce, Fetch, ListOffsets and OffsetForLeaderEpoch from the
logs that it leads, and the APIs of transactions or groups if its network has a coordinator of them. Tests change it:
after `broker.script("Produce", function, ...)` each function handles one request instead of the broker, in order. It
returns a response, None for no response, or DROP to close the connection; `broker.serve(request)` returns the broker's
own response.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from odradek.client.config import Address
from odradek.protocol.api import by_name
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.find_coordinator import Coordinator as Found
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.protocol.schema import Message
from tests.client.scripted_coordinator import APIS as TRANSACTION_APIS
from tests.client.scripted_log import Log
from tests.client.scripted_sessions import Sessions

if TYPE_CHECKING:
    from tests.client.scripted_groups import GroupCoordinator
    from tests.client.scripted_network import MemoryTransport, ScriptedNetwork

DROP = object()
SERVED = ("Produce", "Fetch", "ListOffsets", "Metadata", "ApiVersions", "InitProducerId", "OffsetForLeaderEpoch")

Answer = Message | object | None
Script = Callable[["Broker", Any], Awaitable[Answer]]

_LATEST, _EARLIEST = -1, -2


class Broker:
    """One broker. `requests` are all that it has read, in order, `versions` the versions that it serves."""

    def __init__(self, network: ScriptedNetwork, node_id: int) -> None:
        self.network = network
        self.node_id = node_id
        self.address = Address(f"broker{node_id}", 9092)
        self.requests: list[Any] = []
        served = SERVED if network.coordinator is None else (*SERVED, *TRANSACTION_APIS)
        self.versions = {api.key: (api.min_version, api.max_version) for api in map(by_name, served)}
        if network.groups is not None:  # in place of a coordinator of transactions
            find = by_name("FindCoordinator")
            self.versions |= {find.key: (find.min_version, find.max_version), **network.groups.versions}
        self.is_up = True
        self.transports: dict[MemoryTransport, None] = {}  # in the order in which they were opened
        self.sessions = Sessions()
        self._scripts: dict[int, deque[Script]] = defaultdict(deque)

    def script(self, name: str, *answers: Script) -> None:
        self._scripts[by_name(name).key].extend(answers)

    def clear_scripts(self) -> None:
        """Remove the remaining functions of `script`."""
        self._scripts.clear()

    def limit(self, name: str, last_version: int) -> None:
        """Serve an API only up to this version."""
        key = by_name(name).key
        self.versions[key] = (self.versions[key][0], last_version)

    def received(self, kind: type[Message]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    def go_down(self) -> None:
        """Close all connections and refuse new ones."""
        self.is_up = False
        self.drop_connections()

    def come_up(self) -> None:
        self.is_up = True

    def drop_connections(self) -> None:
        for transport in tuple(self.transports):
            transport.lose()

    async def answer(self, api_key: int, request: Any) -> Answer:
        self.requests.append(request)
        scripts = self._scripts[api_key]
        if scripts:
            return await scripts.popleft()(self, request)
        if self.network.disturbance is not None:
            return await self.network.disturbance(self, request)
        return await self.serve(request)

    async def serve(self, request: Any) -> Message | None:
        """The response of a broker; None for a Produce with acks=0."""
        match request:
            case ApiVersionsRequest():
                return self._api_versions()
            case MetadataRequest():
                return self._metadata(request)
            case InitProducerIdRequest() if request.transactional_id is None:
                return InitProducerIdResponse(producer_id=self.network.next_producer_id(), producer_epoch=0)
            case ProduceRequest():
                return self._produce(request)
            case FetchRequest():
                return await self._fetch(request)
            case ListOffsetsRequest():
                return self._list_offsets(request)
            case OffsetForLeaderEpochRequest():
                return self._ends_of_epochs(request)
        if self.network.groups is not None:
            return await self._serve_group(self.network.groups, request)
        if self.network.coordinator is not None:
            return self.network.coordinator.serve(self.node_id, request)
        raise AssertionError(f"the scripted broker does not serve {request}")

    async def _serve_group(self, groups: GroupCoordinator, request: Any) -> Message:
        if not isinstance(request, FindCoordinatorRequest):
            return await groups.serve(self.node_id, request)
        address = self.network.brokers[groups.node_id].address
        return FindCoordinatorResponse(
            coordinators=[Found(key, groups.node_id, *address) for key in request.coordinator_keys]
        )

    def _api_versions(self) -> ApiVersionsResponse:
        response = ApiVersionsResponse(0, [ApiVersion(key, *served) for key, served in self.versions.items()])
        if self.network.coordinator is not None:
            level = self.network.coordinator.level
            response.finalized_features = [FinalizedFeatureKey("transaction.version", level, level)]
        return response

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        network = self.network
        topics = []
        every = [MetadataRequestTopic(name=name) for name in dict.fromkeys(topic for topic, _ in network.logs)]
        for wanted in every if request.topics is None else request.topics:
            name = wanted.name or network.topic_name(wanted.topic_id)
            if request.allow_auto_topic_creation and not network.partitions(name):
                network.create(name)
            partitions = [
                MetadataResponsePartition(0, log.partition, log.leader, log.leader_epoch, [log.leader], [log.leader])
                for log in network.partitions(name)
            ]
            error = ErrorCode.NONE if partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topics.append(MetadataResponseTopic(error, name, network.topic_id(name), False, partitions))
        up = [broker for broker in network.brokers.values() if broker.is_up]
        brokers = [MetadataResponseBroker(broker.node_id, *broker.address) for broker in up]
        return MetadataResponse(brokers=brokers, cluster_id="scripted", controller_id=1, topics=topics)

    def _produce(self, request: ProduceRequest) -> ProduceResponse | None:
        answer = ProduceResponse()
        for topic in request.topic_data:
            rows = []
            for data in topic.partition_data:
                log, error = self._find(topic.name, topic.topic_id, data.index)
                base_offset = -1
                if log is not None:
                    error, base_offset = log.append(data.records)
                rows.append(PartitionProduceResponse(data.index, error, base_offset))
            answer.responses.append(TopicProduceResponse(topic.name, topic.topic_id, rows))
        return answer if request.acks else None

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        if not self.network.with_sessions:
            return await self._fetch_whole(request)
        meant = self.sessions.enter(request)
        return (
            meant if isinstance(meant, FetchResponse) else self.sessions.leave(request, await self._fetch_whole(meant))
        )

    async def _fetch_whole(self, request: FetchRequest) -> FetchResponse:
        answer = self._read(request)
        if not any(row.records or row.error_code for topic in answer.responses for row in topic.partitions):
            waits = [
                asyncio.ensure_future(log.appended.wait())
                for topic in request.topics
                for partition in topic.partitions
                if (log := self._find(topic.topic, topic.topic_id, partition.partition)[0]) is not None
            ]
            try:
                await asyncio.wait(waits, timeout=request.max_wait_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            answer = self._read(request)
        return answer

    def _read(self, request: FetchRequest) -> FetchResponse:
        answer = FetchResponse()
        for topic in request.topics:
            rows = []
            for wanted in topic.partitions:
                log, error = self._find(topic.topic, topic.topic_id, wanted.partition)
                row = PartitionData(wanted.partition, error)
                if log is not None:
                    row.high_watermark = row.last_stable_offset = log.end_offset
                    if not log.start_offset <= wanted.fetch_offset <= log.end_offset:
                        row.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                    else:
                        row.records = log.read(wanted.fetch_offset, wanted.partition_max_bytes)
                        row.aborted_transactions = log.aborted if request.isolation_level else None
                rows.append(row)
            answer.responses.append(FetchableTopicResponse(topic.topic, topic.topic_id, rows))
        return answer

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        answer = ListOffsetsResponse()
        for topic in request.topics:
            rows = [self._offset(topic.name, wanted) for wanted in topic.partitions]
            answer.topics.append(ListOffsetsTopicResponse(topic.name, rows))
        return answer

    def _ends_of_epochs(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        answer = OffsetForLeaderEpochResponse()
        for topic in request.topics:
            rows = []
            for wanted in topic.partitions:
                log, error = self._find(topic.topic, b"", wanted.partition)
                row = EpochEndOffset(error, wanted.partition)
                if log is not None and wanted.current_leader_epoch < log.leader_epoch:
                    row.error_code = ErrorCode.FENCED_LEADER_EPOCH
                elif log is not None:
                    row.leader_epoch, row.end_offset = log.end_of_epoch(wanted.leader_epoch)
                rows.append(row)
            answer.topics.append(OffsetForLeaderTopicResult(topic.topic, rows))
        return answer

    def _offset(self, name: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        log, error = self._find(name, b"", wanted.partition_index)
        row = ListOffsetsPartitionResponse(wanted.partition_index, error)
        if log is None:
            return row
        if wanted.timestamp == _LATEST:
            row.offset = log.end_offset
        elif wanted.timestamp == _EARLIEST:
            row.offset = log.start_offset
        else:
            found = next((record for record in log.records() if record.timestamp >= wanted.timestamp), None)
            if found is not None:
                row.offset, row.timestamp = found.offset, found.timestamp
        return row

    def _find(self, name: str, topic_id: bytes, partition: int) -> tuple[Log | None, ErrorCode]:
        log = self.network.logs.get((name or self.network.topic_name(topic_id), partition))
        if log is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return (log, ErrorCode.NONE) if log.leader == self.node_id else (None, ErrorCode.NOT_LEADER_OR_FOLLOWER)
