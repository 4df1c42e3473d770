"""A subscribed consumer: it joins its group, takes partitions over and gives them up, and commits how far it has read.

```
 subscribe()          tend(): joined         heartbeat: rebalance, or topics changed
----------> wants to join ----------> member -----------------------------------------> wants to join
                  ^                     |
                  +---------------------+ lost: the group went on without it, or it did not poll in time
```
What takes partitions away happens in `poll` alone, which the consumer calls between records: no record is in the user's
hands then, so everything handed out before counts as done and may be committed. In the background there are only
heartbeats; what they learn asks the user's next poll for a `poll`. Whoever does not poll for `max_poll_interval_ms`
leaves the group. The protocols differ in how a member comes to own what: `classic_group`, `consumer_group`.

Positions of new partitions are the committed offsets; where there are none, `auto_offset_reset` says.
"""

from __future__ import annotations

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from odradek.client.admin.results import CommittedOffset
from odradek.client.config import ConsumerConfig
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.errors import ClientError
from odradek.client.group.committed_offsets import NO_GENERATION, CommittedOffsets, Committer
from odradek.client.group.coordinator import Coordinator
from odradek.client.group.rebalance_listener import RebalanceListener
from odradek.client.network.cluster import Cluster
from odradek.client.record import TopicPartition
from odradek.protocol.plural import pluralize

_LOG = logging.getLogger(__name__)


class Member(Protocol):
    """What a member of either protocol is to its group."""

    member_id: str
    generation: int  # or member epoch; NO_GENERATION outside

    async def leave(self, reason: str) -> None:
        """Leave the group at once, as far as the protocol wants it. Raises ClientError."""
        ...

    def forget(self) -> None:
        """Be a member no more."""
        ...


class Group(ABC):
    """The group side of one consumer, whichever the protocol.

    `on_assignment` is called when partitions came or went, `on_news` when `poll` has something to do.
    """

    _member: Member

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        subscription: SubscriptionState,
        on_assignment: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        assert config.group_id is not None
        self._config = config
        self._cluster = cluster
        self._subscription = subscription
        self._on_assignment = on_assignment
        self._on_news = on_news
        self._loop = asyncio.get_running_loop()
        self._coordinator = Coordinator(cluster, config.group_id)
        self.offsets = CommittedOffsets(config, self._coordinator, self._committer)
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._listener = RebalanceListener()
        self._wants_join = False
        self._is_lost = False
        self._failure: ClientError | None = None
        self._joining: asyncio.Task[None] | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._polled_at = self._loop.time()
        self._committed_at = self._loop.time()

    @property
    def is_subscribed(self) -> bool:
        return bool(self._topics) or self._pattern is not None

    @property
    def topics(self) -> frozenset[str]:
        """The topics that are subscribed to by name; none with a pattern."""
        return self._topics if self._pattern is None else frozenset()

    async def subscribe(
        self, topics: Collection[str], pattern: re.Pattern[str] | None, listener: RebalanceListener | None
    ) -> None:
        """Want these topics, or those whose whole names match; for neither, leave. The next `poll` joins."""
        is_wanted = bool(topics) or pattern is not None
        if not is_wanted:
            await self._revoke(self._owned())
            await self._leave("the consumer unsubscribed")
        self._topics, self._pattern = frozenset(topics), pattern
        self._listener = listener or RebalanceListener()
        self._wants_join = is_wanted

    async def poll(self) -> None:
        """Between records: join if need be, and commit if it is time. Raises what the user has to know.

        A join that takes longer than the caller waits goes on, and the next call waits for it again.
        """
        self._polled_at = self._loop.time()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        while self._wants_join or self._joining is not None:
            joining = self._joining
            if joining is None:
                joining = self._joining = asyncio.create_task(self._join())
                joining.add_done_callback(_retrieve_exception)
            try:
                await asyncio.shield(joining)
            finally:
                if joining.done():
                    self._joining = None
        if self._config.enable_auto_commit and self._is_time_to_commit():
            self._commit_soon()

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """How far these were handed out."""
        found = {}
        for partition in partitions:
            state = self._subscription.states.get(partition)
            if state is not None and state.position is not None:
                found[partition] = CommittedOffset(state.position, state.position_epoch)
        return found

    async def close(self, *, commits: bool) -> None:
        """Commit, if wanted and automatic, tell the listener, and leave the group at once.

        What the listener raises is raised when the group is left. Source: Kafka `ConsumerCoordinator.onLeavePrepare`.
        """
        for task in (self._joining, self._heartbeat_task, self._committing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self.is_subscribed:
            try:
                if commits and not self._wants_join:
                    await self._commit_given_up(self._owned())
                await self._call_listener_at_close(self._owned())
            finally:
                await self._leave("the consumer was closed")

    async def _call_listener_at_close(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions and self._is_lost:
            await self._listener.on_lost(partitions)
        elif partitions:
            await self._listener.on_revoked(partitions)

    # Joining.

    async def _join(self) -> None:
        while self._wants_join:
            self._wants_join = False
            try:
                await self._rejoin()
            except BaseException:
                self._wants_join = True
                raise
        if self._heartbeat_task is None or self._heartbeat_task.done():
            self._heartbeat_task = asyncio.create_task(self._send_heartbeats())

    @abstractmethod
    async def _rejoin(self) -> None:
        """Join, or do what else makes the member own what it is to own; `_wants_join` again if there is more to do."""

    @abstractmethod
    async def _heartbeat(self) -> None:
        """Tell the coordinator that this member lives, and look for what else is new. Raises ClientError."""

    @abstractmethod
    def _handle_heartbeat_error(self, error: ClientError) -> None:
        """A heartbeat was refused, or not answered."""

    @property
    @abstractmethod
    def _interval(self) -> float:
        """Seconds between heartbeats."""

    async def _take_over(self, assigned: Sequence[TopicPartition]) -> None:
        owned = self._owned()
        given_up = [partition for partition in owned if partition not in set(assigned)]
        if given_up:
            await self._revoke(given_up)
            self._wants_join = True  # now they are free for others
        new = [partition for partition in assigned if partition not in set(owned)]
        offsets = await self.offsets.committed(new, self._config.default_api_timeout_ms)
        self._assign([*self._owned(), *new], offsets)
        await self._listener.on_assigned(new)
        count = pluralize(len(assigned), "partition")
        _LOG.info("member %s of group %s: %s", self._member.member_id, self._config.group_id, count)

    async def _revoke(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions:
            await self._commit_given_up(partitions)
            await self._listener.on_revoked(partitions)
            self._drop(partitions)

    async def _lose(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions:
            await self._listener.on_lost(partitions)
            self._drop(partitions)

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        self._assign([partition for partition in self._owned() if partition not in partitions])

    def _assign(
        self, partitions: Sequence[TopicPartition], offsets: Mapping[TopicPartition, CommittedOffset | None] = {}
    ) -> None:
        self._subscription.assign(partitions)
        for partition, at in offsets.items():
            if at is not None:
                self._subscription.states[partition].seek(at.offset, at.leader_epoch)
        self._cluster.track(self._subscription.topics())
        self._on_assignment()

    def _owned(self) -> list[TopicPartition]:
        return sorted(self._subscription.states)

    # In the background.

    async def _send_heartbeats(self) -> None:
        """Tell the coordinator again and again that this member lives."""
        heard_at = self._loop.time()
        while self._member.generation != NO_GENERATION:
            await asyncio.sleep(self._interval)
            if self._joining is not None:
                heard_at = self._loop.time()
                continue
            if self._loop.time() - self._polled_at > self._config.max_poll_interval_ms / 1000:
                await self._leave_after_poll_timeout()
                return
            self._on_news()  # the consumer comes by `poll`, if only between two records
            try:
                await self._heartbeat()
                heard_at = self._loop.time()
            except ClientError as error:
                self._handle_heartbeat_error(error)
                if self._loop.time() - heard_at > self._config.session_timeout_ms / 1000:
                    self._lost()

    def _lost(self) -> None:
        """The coordinator does not count on this member any more: what it owned is another's."""
        self._member.forget()
        self._is_lost = True
        self._request_join()

    async def _leave_after_poll_timeout(self) -> None:
        _LOG.warning(
            "group %s is left: no poll within max_poll_interval_ms of %d. "
            "Take fewer records at once, or allow for more time",
            self._config.group_id,
            self._config.max_poll_interval_ms,
        )
        await self._leave("it did not poll in time")
        self._lost()

    def _request_join(self) -> None:
        self._wants_join = True
        self._on_news()

    async def _leave(self, reason: str) -> None:
        try:
            await self._member.leave(reason)
        except ClientError as error:
            _LOG.warning("%s", error)  # the session's time-out does it too, later

    # Committing.

    def _committer(self) -> Committer:
        if not self.is_subscribed:
            return Committer(NO_GENERATION, "", None)
        return Committer(self._member.generation, self._member.member_id, self._config.group_instance_id)

    def _is_time_to_commit(self) -> bool:
        return self._loop.time() - self._committed_at >= self._config.auto_commit_interval_ms / 1000

    def _commit_soon(self) -> None:
        """Commit what was handed out, which is done by now, in the background; one commit at a time."""
        if self._committing is None or self._committing.done():
            self._committed_at = self._loop.time()
            self._committing = asyncio.create_task(self._commit_automatically(self.positions(self._owned())))

    async def _commit_given_up(self, partitions: Collection[TopicPartition]) -> None:
        if self._config.enable_auto_commit and self._member.generation != NO_GENERATION:
            await self._commit_automatically(self.positions(partitions))

    async def _commit_automatically(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        try:
            await self.offsets.commit(offsets, self._config.request_timeout_ms)
        except ClientError as error:
            _LOG.warning("%s", error)  # the records are read again by whoever gets the partitions


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Whoever waits for it has its error; nobody may be left."""
    if not task.cancelled():
        task.exception()
