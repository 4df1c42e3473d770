"""A member of a group of the newer protocol: one request, ConsumerGroupHeartbeat, for everything (KIP-848).

```
           epoch 0: join           assignment, epoch n
outside ---------------------> member <----------------+
   ^                             |  epoch n, what it owns, when that changed, or nothing but the epoch
   |                             +---------------------+
   +-- FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, leave() (epoch -1; -2: a static member that comes back)
```
The coordinator assigns. `target` is what the member shall own, as last told; a partition is in it when nobody else owns
it any more. What did not change since the last heartbeat is not said again; after one that was not answered everything
is.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Collection, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.errors import BrokerError, ClientError, ClosedError, broker_error
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.coordinator import NOT_THE_COORDINATOR, Coordinator
from odradek.client.network.backoff import Backoff
from odradek.protocol.code_generation.primitives import uuid_to_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_LOG = logging.getLogger(__name__)

Owned = Mapping[bytes, Collection[int]]
"""Partitions by topic id."""

LOST = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
"""What a coordinator answers to a member that it does not count on any more: it has to join again, with nothing."""

_JOIN, _LEAVE, _LEAVE_FOR_A_WHILE = 0, -1, -2


class ConsumerMember:
    """A member; one call at a time.

    `generation` is its epoch, or NO_GENERATION outside of the group; `heartbeat_interval` is in seconds.
    """

    def __init__(self, config: ConsumerConfig, coordinator: Coordinator) -> None:
        self.member_id = uuid_to_text(uuid.uuid4().bytes)
        self.generation = NO_GENERATION
        self.target: dict[bytes, list[int]] = {}
        self.heartbeat_interval = config.heartbeat_interval_ms / 1000
        self._config = config
        self._coordinator = coordinator
        self._sends_everything = True  # in the next heartbeat
        self._reported: dict[bytes, list[int]] | None = None  # what the coordinator knows to be owned

    async def join(self, topics: Collection[str], regex: str | None) -> None:
        """Join, owning nothing. Raises what lasts, as ClientError."""
        config = self._config
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        while True:
            self._sends_everything = True
            try:
                await self._send(_JOIN, topics, regex, {})
            except ClosedError:
                raise
            except ClientError as error:
                if not error.retriable and not self.handle_error(error):
                    raise
                _LOG.info("%s", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def heartbeat(self, topics: Collection[str], regex: str | None, owned: Owned) -> None:
        """Say that this member lives, and what it owns if that changed; learn the target. Raises ClientError."""
        await self._send(self.generation, topics, regex, owned)

    async def leave(self, reason: str) -> None:  # noqa: ARG002 - this protocol tells none
        """Leave the group at once; a static member keeps its partitions until its session ends. Raises ClientError."""
        if self.generation == NO_GENERATION:
            return
        self.forget()
        epoch = _LEAVE if self._config.group_instance_id is None else _LEAVE_FOR_A_WHILE
        request = ConsumerGroupHeartbeatRequest(
            self._coordinator.group_id, self.member_id, epoch, self._config.group_instance_id
        )
        response, broker = await self._coordinator.send(request, ConsumerGroupHeartbeatResponse)
        if response.error_code:
            raise self._error(response, broker)

    def handle_error(self, error: ClientError) -> bool:
        """An error came: look for the coordinator again, say everything again. Whether this member is lost."""
        self._sends_everything = True
        if isinstance(error, BrokerError):
            if error.code in NOT_THE_COORDINATOR:
                self._coordinator.forget_coordinator()
            if error.code in LOST:
                self.forget()
                return True
        return False

    def send_everything_next(self) -> None:
        """Say everything in the next heartbeat: the subscription is another."""
        self._sends_everything = True

    def forget(self) -> None:
        """Be a member no more."""
        self.generation = NO_GENERATION
        self.target = {}
        self._reported = None

    async def _send(self, epoch: int, topics: Collection[str], regex: str | None, owned: Owned) -> None:
        config = self._config
        owns = {topic_id: sorted(partitions) for topic_id, partitions in owned.items() if partitions}
        request = ConsumerGroupHeartbeatRequest(
            self._coordinator.group_id, self.member_id, epoch, config.group_instance_id
        )
        if self._sends_everything:
            request.rebalance_timeout_ms = config.max_poll_interval_ms
            request.subscribed_topic_names = sorted(topics)
            request.server_assignor = config.group_remote_assignor
            if regex is not None:
                request.subscribed_topic_regex = regex
        if self._sends_everything or owns != self._reported:
            request.topic_partitions = [TopicPartitions(topic_id, indexes) for topic_id, indexes in owns.items()]
        response, broker = await self._coordinator.send(request, ConsumerGroupHeartbeatResponse)
        if response.error_code:
            raise self._error(response, broker)
        self._sends_everything, self._reported = False, owns
        self.generation = response.member_epoch
        self.heartbeat_interval = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            self.target = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}

    def _error(self, response: ConsumerGroupHeartbeatResponse, broker: str) -> BrokerError:
        tried = f"be a member of group {self._coordinator.group_id}"
        return broker_error(response.error_code, tried, response.error_message, broker=broker)
