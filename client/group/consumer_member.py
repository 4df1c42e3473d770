"""A member of a group with the newer protocol: one request for everything, ConsumerGroupHeartbeat (KIP-848).

```
           epoch 0: join           assignment, epoch n
outside ---------------------> member <----------------+
   ^                             |  epoch n, and the owned partitions if they changed
   |                             +---------------------+
   +-- FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, leave() (epoch -1; -2: a static member that will return)
```
The coordinator assigns. `target` is the last assignment that it sent; it contains a partition only after every other
member has revoked it. A heartbeat contains only the fields that changed since the last one; after a heartbeat without a
response it contains all fields.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Collection, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.errors import BrokerError, ClientError, ClosedError, broker_error
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.network.backoff import Backoff
from odradek.client.network.coordinator import NOT_THE_COORDINATOR, Coordinator
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.uuids import uuid_to_text

_LOG = logging.getLogger(__name__)

Owned = Mapping[bytes, Collection[int]]
"""Partitions by topic id."""

LOST = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
"""Errors for a member that the coordinator has removed: it must join again, owning nothing."""

_JOIN, _LEAVE, _LEAVE_FOR_A_WHILE = 0, -1, -2


class ConsumerMember:
    """A member; one call at a time.

    `generation` is its epoch, or NO_GENERATION outside of the group; `heartbeat_interval` is in seconds.
    `knows_target`: the last report of owned partitions has been answered. Until then `target` may be old, and
    what it has beyond the owned partitions may be another member's now.
    """

    def __init__(self, config: ConsumerConfig, coordinator: Coordinator) -> None:
        self.member_id = uuid_to_text(uuid.uuid4().bytes)
        self.generation = NO_GENERATION
        self.target: dict[bytes, list[int]] = {}
        self.knows_target = True
        self.heartbeat_interval = config.heartbeat_interval_ms / 1000
        self._config = config
        self._coordinator = coordinator
        self._topics: frozenset[str] = frozenset()
        self._regex: str | None = None
        self._sends_everything = True  # in the next heartbeat
        self._has_regex = False  # a pattern was sent to this group, which may have it still
        self._memberships = 0  # that have ended
        self._may_be_member = False  # a join was sent, whose answer may not have arrived
        self._reported: dict[bytes, list[int]] | None = (
            None  # the owned partitions in the last heartbeat that succeeded
        )

    def subscribe(self, topics: frozenset[str], regex: str | None) -> None:
        """Set the topics, or the pattern, that the next request names, also if it repeats one that is under way."""
        self._topics, self._regex = topics, regex
        self._sends_everything = True

    async def join(self) -> None:
        """Join, owning nothing. Raises ClientError for an error that cannot be retried."""
        config = self._config
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        while True:
            self._sends_everything = True
            try:
                await self._send(_JOIN, {})
            except ClosedError:
                raise
            except ClientError as error:
                was_removed = self.handle_error(error)
                if not error.retriable and not was_removed:
                    raise
                _LOG.info("%s", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def heartbeat(self, owned: Owned) -> None:
        """Send a heartbeat with the owned partitions, and store the target of the response. Raises ClientError."""
        await self._send(self.generation, owned)

    async def keep_alive(self) -> None:
        """Send a heartbeat that says nothing about partitions: some are being taken over or given up.

        The coordinator then gives none of them to another member. Raises ClientError.
        """
        await self._exchange(self._request(self.generation), None)

    async def leave(self, reason: str) -> None:  # noqa: ARG002 - the protocol has no field for it
        """Leave the group at once; a static member keeps its partitions until its session ends. Raises ClientError."""
        if not self._may_be_member:
            return
        self.forget()
        epoch = _LEAVE if self._config.group_instance_id is None else _LEAVE_FOR_A_WHILE
        response, broker = await self._coordinator.send(self._request(epoch), ConsumerGroupHeartbeatResponse)
        if response.error_code and response.error_code not in LOST:
            raise self._error(response, broker)

    def handle_error(self, error: ClientError) -> bool:
        """Handle an error of a heartbeat. Returns whether the coordinator has removed this member."""
        if isinstance(error, BrokerError):
            if error.code in NOT_THE_COORDINATOR:
                self._coordinator.forget_coordinator()
            if error.code in LOST:
                self.forget()
                return True
        return False

    def forget(self) -> None:
        """Reset the membership without a request."""
        self.generation = NO_GENERATION
        self.target = {}
        self._reported = None
        self._may_be_member = False
        self._memberships += 1

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        instance_id = self._config.group_instance_id
        return ConsumerGroupHeartbeatRequest(self._coordinator.key, self.member_id, epoch, instance_id)

    async def _send(self, epoch: int, owned: Owned) -> None:
        config, regex = self._config, self._regex
        owns = {topic_id: sorted(partitions) for topic_id, partitions in owned.items() if partitions}
        request = self._request(epoch)
        sends_everything, self._sends_everything = self._sends_everything, False  # it may be set during the request
        if sends_everything:
            request.rebalance_timeout_ms = config.max_poll_interval_ms
            request.subscribed_topic_names = sorted(self._topics)
            request.server_assignor = config.group_remote_assignor
            if regex is not None or self._has_regex:
                request.subscribed_topic_regex = regex or ""  # null would leave an earlier pattern in place
            self._has_regex |= regex is not None
        if sends_everything or owns != self._reported:
            request.topic_partitions = [TopicPartitions(topic_id, indexes) for topic_id, indexes in owns.items()]
        await self._exchange(request, owns)

    async def _exchange(self, request: ConsumerGroupHeartbeatRequest, owns: dict[bytes, list[int]] | None) -> None:
        """Send a heartbeat; `owns` are the partitions that it reports, None if it says nothing about them."""
        self._may_be_member, membership = True, self._memberships
        if owns is not None:
            self.knows_target = False
        try:
            response, broker = await self._coordinator.send(request, ConsumerGroupHeartbeatResponse)
        except BaseException:
            self._sends_everything = True
            raise
        if response.error_code:
            self._sends_everything = True
            raise self._error(response, broker)
        if membership != self._memberships:
            return  # it was left meanwhile
        if owns is not None:
            self._reported, self.knows_target = owns, True
        self.generation = response.member_epoch
        self.heartbeat_interval = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            self.target = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}

    def _error(self, response: ConsumerGroupHeartbeatResponse, broker: str) -> BrokerError:
        tried = f"stay in group {self._coordinator.key}"
        return broker_error(response.error_code, tried, response.error_message, broker=broker)
