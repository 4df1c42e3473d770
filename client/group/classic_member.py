"""A member of a classic group: its requests to the coordinator, and its reactions to their errors.

```
            join()                        sync              heartbeat()
outside ------------> waiting for all ------------> member ------------+
   ^                        ^                          |               |
   |                        +---- REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION (rejoin, same id)
   +---- UNKNOWN_MEMBER_ID (the id is dropped), leave()
```
| error | action |
|---|---|
| MEMBER_ID_REQUIRED | repeat the request with the id of the response (KIP-394) |
| REBALANCE_IN_PROGRESS | join again: another rebalance began |
| ILLEGAL_GENERATION | join again with the same id: the group has a newer generation |
| UNKNOWN_MEMBER_ID | join as a new member: the group has removed this one |
| NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, no response | find the coordinator, then repeat the request |
| COORDINATOR_LOAD_IN_PROGRESS and other retriable errors | repeat the request after a backoff |
| FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED and all others | raise |

Every member joins with its assignors and the partitions that it owns. The member that the coordinator chose as the
leader computes the assignment of all members and sends it with SyncGroup.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from odradek.client.config import ConsumerConfig
from odradek.client.errors import BrokerError, ClientError, ClosedError, broker_error
from odradek.client.group.assignors import ASSIGNORS, Assignor, Subscriber
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.consumer_protocol import (
    assigned,
    by_topic,
    decode_consumer_protocol,
    decode_sticky_data,
    encode_sticky_data,
    owned,
)
from odradek.client.group.rebalancer import ErrorAction
from odradek.client.network.backoff import Backoff
from odradek.client.network.connections import Purpose
from odradek.client.network.coordinator import NOT_THE_COORDINATOR, Coordinator
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode, RemoteProtocolError
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    write_consumer_protocol,
)

_LOG = logging.getLogger(__name__)

_GENERATION = struct.Struct(">i")
_PROTOCOL_TYPE = "consumer"
_SUBSCRIPTION_VERSION, _ASSIGNMENT_VERSION = 3, 3
_JOIN_GRACE = 5.0  # seconds beyond the rebalance timeout in which a response to JoinGroup may arrive
_GROUP = Purpose.GROUP

CountPartitions = Callable[[Collection[str]], Awaitable[Mapping[str, int]]]


def error_action(code: ErrorCode) -> ErrorAction:
    """Look up the action in the table above, which has MEMBER_ID_REQUIRED as well."""
    if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
        return ErrorAction.REJOIN
    if code is ErrorCode.UNKNOWN_MEMBER_ID:
        return ErrorAction.NEW_MEMBER
    return ErrorAction.RETRY if code.retriable else ErrorAction.FATAL


class JoinResult(NamedTuple):
    """The result of joining."""

    assignor: Assignor
    partitions: list[TopicPartition]


class ClassicMember:
    """A member; one call at a time. `generation` is NO_GENERATION outside of the group."""

    def __init__(self, config: ConsumerConfig, coordinator: Coordinator, count_partitions: CountPartitions) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self._config = config
        self._coordinator = coordinator
        self._count_partitions = count_partitions
        self._last: list[TopicPartition] = []  # the last assignment, for sticky assignors
        self._last_generation = NO_GENERATION

    async def join(self, topics: Collection[str], owned_now: Sequence[TopicPartition]) -> JoinResult:
        """Join, or join again, and return the assignment.

        Raises ClientError for an error that cannot be retried, and if the membership that `owned_now` is of has ended:
        another member may own them, so they must be lost before the next join.
        """
        config = self._config
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        while True:
            try:
                response = await self._join_group(topics, owned_now)
                self.member_id, self.generation = response.member_id, response.generation_id
                joined = await self._sync_group(response)
            except ClosedError:
                raise
            except ClientError as error:
                action = self.handle_error(error)
                has_ended = action is not ErrorAction.RETRY and self.generation == NO_GENERATION
                if action is ErrorAction.FATAL or (has_ended and owned_now):
                    raise
                _LOG.info("%s", error)
                if not isinstance(error, BrokerError) or error.retriable:
                    await asyncio.sleep(backoff.next())
            else:
                self._last, self._last_generation = joined.partitions, self.generation
                return joined

    async def heartbeat(self) -> None:
        """Send a heartbeat. Raises ClientError, which the caller passes to `handle_error`."""
        request = HeartbeatRequest(
            self._coordinator.key, self.generation, self.member_id, self._config.group_instance_id
        )
        response, broker = await self._coordinator.send(request, HeartbeatResponse, purpose=_GROUP)
        if response.error_code:
            raise self._error(response.error_code, "stay in", broker)

    async def leave(self, reason: str) -> None:
        """Leave the group at once, except as a static member, whose session must end first. Raises ClientError."""
        if not self.member_id or self._config.group_instance_id is not None:
            return
        member = MemberIdentity(self.member_id, None, reason)
        self.forget()
        request = LeaveGroupRequest(self._coordinator.key, members=[member])
        response, broker = await self._coordinator.send(request, LeaveGroupResponse)
        code = response.error_code or next((row.error_code for row in response.members if row.error_code), 0)
        if code:
            raise self._error(code, "leave", broker)

    def handle_error(self, error: ClientError) -> ErrorAction:
        """Drop the id or generation if the error requires it, and return the action."""
        if not isinstance(error, BrokerError):
            return ErrorAction.RETRY if error.retriable else ErrorAction.FATAL
        if error.code in NOT_THE_COORDINATOR:
            self._coordinator.forget_coordinator()
        action = error_action(error.code)
        if action is ErrorAction.NEW_MEMBER:
            self.forget()
        elif error.code is ErrorCode.ILLEGAL_GENERATION:
            self.generation = NO_GENERATION
        return action

    def forget(self) -> None:
        """Reset the membership without a request."""
        self.member_id, self.generation = "", NO_GENERATION

    async def _join_group(self, topics: Collection[str], owned_now: Sequence[TopicPartition]) -> JoinGroupResponse:
        config = self._config
        request = JoinGroupRequest(
            self._coordinator.key,
            config.session_timeout_ms,
            config.max_poll_interval_ms,
            self.member_id,
            config.group_instance_id,
            _PROTOCOL_TYPE,
            [
                JoinGroupRequestProtocol(name, self._subscription(ASSIGNORS[name], topics, owned_now))
                for name in config.partition_assignment_strategy
            ],
        )
        timeout_s = max(config.request_timeout_ms, config.max_poll_interval_ms) / 1000 + _JOIN_GRACE
        response, broker = await self._coordinator.send(request, JoinGroupResponse, timeout_s=timeout_s, purpose=_GROUP)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = self.member_id = response.member_id
            response, broker = await self._coordinator.send(
                request, JoinGroupResponse, timeout_s=timeout_s, purpose=_GROUP
            )
        if response.error_code:
            raise self._error(response.error_code, "join", broker)
        return response

    def _subscription(self, assignor: Assignor, topics: Collection[str], owned_now: Sequence[TopicPartition]) -> bytes:
        user_data = encode_sticky_data(self._last, self._last_generation) if assignor.name == "sticky" else None
        subscription = ConsumerProtocolSubscription(
            sorted(topics), user_data, by_topic(sorted(owned_now)), self._last_generation
        )
        return write_consumer_protocol(subscription, _SUBSCRIPTION_VERSION)

    async def _sync_group(self, joined: JoinGroupResponse) -> JoinResult:
        assignor = ASSIGNORS[joined.protocol_name or ""]
        request = SyncGroupRequest(
            self._coordinator.key,
            joined.generation_id,
            joined.member_id,
            self._config.group_instance_id,
            _PROTOCOL_TYPE,
            assignor.name,
        )
        if joined.leader == joined.member_id and not joined.skip_assignment:
            request.assignments = await self._assign(assignor, joined.members)
        response, broker = await self._coordinator.send(request, SyncGroupResponse, purpose=_GROUP)
        if response.error_code:
            raise self._error(response.error_code, "get an assignment in", broker)
        return JoinResult(assignor, assigned(decode_consumer_protocol(ConsumerProtocolAssignment, response.assignment)))

    async def _assign(
        self, assignor: Assignor, members: Sequence[JoinGroupResponseMember]
    ) -> list[SyncGroupRequestAssignment]:
        try:
            subscribers = [_subscriber(assignor, member) for member in members]
        except RemoteProtocolError as error:
            tried = f"assign partitions in group {self._coordinator.key}"
            raise ClientError(tried, f"the subscription of a member cannot be decoded: {error}") from error
        counts = await self._count_partitions({topic for one in subscribers for topic in one.topics})
        return [
            SyncGroupRequestAssignment(
                member_id,
                write_consumer_protocol(ConsumerProtocolAssignment(by_topic(partitions)), _ASSIGNMENT_VERSION),
            )
            for member_id, partitions in assignor.assign(subscribers, counts).items()
        ]

    def _error(self, code: int, doing: str, broker: str) -> BrokerError:
        return broker_error(code, f"{doing} group {self._coordinator.key}", broker=broker)


def _subscriber(assignor: Assignor, member: JoinGroupResponseMember) -> Subscriber:
    subscription = decode_consumer_protocol(ConsumerProtocolSubscription, member.metadata)
    owns, generation = owned(subscription), subscription.generation_id
    if assignor.name == "sticky" and subscription.user_data:
        owns, generation = decode_sticky_data(subscription.user_data)
    elif assignor.is_cooperative and generation < 0 and len(subscription.user_data or b"") >= _GENERATION.size:
        (generation,) = _GENERATION.unpack_from(subscription.user_data or b"")  # as encoded before KIP-792
    return Subscriber(
        member.member_id, frozenset(subscription.topics), tuple(owns), generation, member.group_instance_id
    )
