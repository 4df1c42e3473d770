"""The membership of a subscribed consumer in its group: joining, heartbeats, automatic commits, leaving.

What a member does, and what leads from one state to another, is the table of `member_states`. A member that the
coordinator removed, or that did not poll in time, has lost its partitions, which is a reason to join as a new one.

Partitions are taken over and revoked only inside of `poll`, which the consumer calls between records. The user holds
no record then, so every record that was returned before counts as processed and may be committed. The background task
sends heartbeats; if one finds work, `on_work` makes the consumer call `poll` again. A consumer that does not poll for
`max_poll_interval_ms` leaves the group.

The protocols differ in how a member comes to own partitions: `classic_rebalancer`, `consumer_rebalancer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Collection
from contextvars import ContextVar

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.errors import BrokerError, ClientError, ClosedError
from odradek.client.group.auto_commit import AutoCommit
from odradek.client.group.committed_offsets import NO_GENERATION, CommitIdentity, CommittedOffsets, Offsets
from odradek.client.group.member_states import Change, Event, Heartbeat, State, heartbeat
from odradek.client.group.owned_partitions import JoinAbandonedError, OwnedPartitions
from odradek.client.group.rebalance_listener import RebalanceListener
from odradek.client.group.rebalancer import ErrorAction, Rebalancer
from odradek.client.network.cluster import Cluster
from odradek.client.network.coordinator import Coordinator
from odradek.client.network.outcome import outcome_of
from odradek.client.record import GroupMetadata
from odradek.protocol.plural import pluralize

_LOG = logging.getLogger(__name__)

_JOINING: ContextVar[object] = ContextVar("_JOINING", default=None)
"""The group whose join, or whose listener in it, runs here; also in the tasks that a listener starts."""


class Group:
    """The group side of one consumer, with either protocol.

    `on_assignment` is called when the owned partitions have changed, `on_work` when `poll` has something to do.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        subscription: SubscriptionState,
        on_assignment: Callable[[], None],
        on_work: Callable[[], None],
    ) -> None:
        assert config.group_id is not None
        self._config = config
        self._subscription = subscription
        self._on_work = on_work
        self._loop = asyncio.get_running_loop()
        coordinator = Coordinator(cluster, config.group_id)
        self.offsets = CommittedOffsets(config, coordinator, self._commit_identity)
        self._auto_commit = AutoCommit(config, self.offsets)
        self._owned = OwnedPartitions(config, subscription, self.offsets, self._auto_commit, on_assignment)
        self._rebalancer = self._make_rebalancer(cluster, coordinator)
        self._member = self._rebalancer.member
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._state = State.UNSUBSCRIBED
        self._rejoins = 0  # that have begun
        self._abandoned: asyncio.Task[None] | None = None  # the join that was cancelled here
        self._joined_as: CommitIdentity | None = None
        self._failure: ClientError | None = None
        self._join_task: asyncio.Task[None] | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._polled_at = self._loop.time()

    def _make_rebalancer(self, cluster: Cluster, coordinator: Coordinator) -> Rebalancer:
        """Imported here: a consumer loads the modules of its own protocol alone."""
        config = self._config
        if config.group_protocol == "consumer":
            from odradek.client.group.consumer_rebalancer import ConsumerRebalancer

            return ConsumerRebalancer(
                config, cluster, coordinator, self._owned, self._request_join, self._handle_heartbeat_error
            )
        from odradek.client.group.classic_rebalancer import ClassicRebalancer

        return ClassicRebalancer(config, cluster, coordinator, self._owned, self._request_join)

    @property
    def is_subscribed(self) -> bool:
        return bool(self._topics) or self._pattern is not None

    @property
    def topics(self) -> frozenset[str]:
        """The topics that are subscribed to by name; none with a pattern."""
        return self._topics

    async def subscribe(
        self, topics: Collection[str], pattern: re.Pattern[str] | None, listener: RebalanceListener | None
    ) -> None:
        """Subscribe to these topics, or to a pattern; with neither, leave. The next `poll` joins the group."""
        if not topics and pattern is None:
            await self._unsubscribe()
            return
        self._set_subscription(frozenset(topics), pattern, listener)
        self._on(Event.SUBSCRIBE)

    def _set_subscription(
        self, topics: frozenset[str], pattern: re.Pattern[str] | None, listener: RebalanceListener | None
    ) -> None:
        self._topics, self._pattern = topics, pattern
        self._rebalancer.subscribe(topics, pattern)
        self._owned.listener = listener or RebalanceListener()

    async def _unsubscribe(self) -> None:
        """Give everything up, and leave. Cancels a join that is under way, unless its own listener asks for that."""
        is_nested = self._state is State.LEAVING  # the listener unsubscribes as well
        self._on(Event.UNSUBSCRIBE)
        try:
            task = self._join_task
            if task is not None and not self._is_in_listener():
                self._abandoned = task
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                self._join_task = None
            if self._owned.change.calls_listener:
                self._owned.abandon()
            else:
                with contextlib.suppress(JoinAbandonedError):
                    await self._owned.revoke(self._owned.partitions())
            await self._leave("the consumer unsubscribed")
        except BaseException:
            if not is_nested:
                self._on(Event.STAYED if self.is_subscribed else Event.LEFT)
            raise
        self._set_subscription(frozenset(), None, None)
        if not is_nested:
            self._on(Event.LEFT)

    def _is_in_listener(self) -> bool:
        """Whether the listener of a join runs here: waiting for the join would never end."""
        return _JOINING.get() is self and self._owned.change.calls_listener

    def _on(self, event: Event) -> None:
        self._state = self._state.after(event)

    async def poll(self) -> None:
        """Join if necessary, and commit automatically if it is time. Raises the error that ended the membership.

        A join that takes longer than the caller waits continues, and the next call waits for it again.
        """
        self._polled_at = self._loop.time()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        while self._state.needs_join or (self._join_task is not None and self._state is not State.LEAVING):
            self._check_open()
            task = self._join_task
            if task is None:
                task = self._join_task = asyncio.create_task(self._join())
                task.add_done_callback(_retrieve_exception)
            try:
                await outcome_of(task)
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if task is not self._abandoned or (caller is not None and caller.cancelling()):
                    raise  # cancelled by the caller of `poll`, or by the listener
            finally:
                if task.done() and self._join_task is task:
                    self._join_task = None
        self._check_open()
        if self._auto_commit.is_due():
            self._auto_commit.start(self._subscription.consumed_offsets(self._owned.partitions()))

    def _check_open(self) -> None:
        if self._state is State.CLOSED:
            raise ClosedError("stay in a group", "the consumer was closed")

    async def commit(self, offsets: Offsets, timeout_ms: int) -> None:
        """Commit these offsets, instead of an automatic commit that is under way. Raises ClientError."""
        self._auto_commit.supersede()
        await self.offsets.commit(offsets, timeout_ms)

    async def close(self, *, commits: bool) -> None:
        """Commit, if `commits` and automatic commits are on, call the listener, and leave the group.

        An exception of the listener is raised after the group was left. Source: Kafka
        `ConsumerCoordinator.onLeavePrepare`.
        """
        self.stop()
        await asyncio.gather(*self._tasks(), self._auto_commit.close(), return_exceptions=True)
        if self.is_subscribed:
            try:
                if commits and not self._owned.are_lost:
                    await self._owned.commit(self._owned.partitions())
                await self._call_listener_at_close()
            finally:
                await self._leave("the consumer was closed")

    def stop(self) -> None:
        """Cancel what runs in the background. Neither commits nor leaves: the end of a close that was cancelled."""
        self._on(Event.CLOSE)
        self._abandoned = self._join_task
        for task in self._tasks():
            task.cancel()
        self._auto_commit.cancel()

    def _tasks(self) -> list[asyncio.Task[None]]:
        """The background tasks; without the join if its own listener calls this."""
        joining = None if self._is_in_listener() else self._join_task
        return [task for task in (joining, self._heartbeat_task) if task is not None]

    async def _call_listener_at_close(self) -> None:
        partitions = self._owned.partitions()
        if partitions and self._owned.are_lost:
            await self._owned.listener.on_lost(partitions)
        elif partitions:
            await self._owned.listener.on_revoked(partitions)

    async def _join(self) -> None:
        _JOINING.set(self)
        self._on(Event.JOIN)
        while self._state is State.JOINING:
            if self._heartbeat_task is None or self._heartbeat_task.done():
                self._heartbeat_task = asyncio.create_task(self._send_heartbeats())
            self._rejoins += 1
            try:
                if self._owned.are_lost:
                    await self._owned.lose(self._owned.partitions())
                must_follow = await self._rebalancer.rejoin()
            except JoinAbandonedError:
                return
            except BaseException:
                self._on(Event.FAILED)
                raise
            if must_follow:
                self._on(Event.REASON)
            self._on(Event.JOINED)
            self._joined_as = self._commit_identity()
            count = pluralize(len(self._owned.partitions()), "partition")
            _LOG.info("member %s of group %s owns %s", self._member.member_id, self._config.group_id, count)

    def _request_join(self) -> None:
        """Join again at the next `poll`."""
        self._on(Event.REASON)
        self._on_work()

    # In the background.

    async def _send_heartbeats(self) -> None:
        """Send the heartbeats that `member_states` says, until the membership ends.

        The user, or the listener, must come back to `poll` in time: a call that waits for a join is in it.
        """
        answered_at = self._loop.time()
        while True:
            await asyncio.sleep(self._rebalancer.heartbeat_interval)
            due = heartbeat(self._state, self._owned.change)
            is_member = self._member.generation != NO_GENERATION
            is_joining = self._state.is_joining
            if is_joining and not (is_member and self._owned.change.calls_listener):
                self._polled_at = self._loop.time()
            if due is Heartbeat.NONE or (is_joining and not is_member):
                answered_at = self._loop.time()
                continue
            if not is_member:
                return
            if self._loop.time() - self._polled_at > self._config.max_poll_interval_ms / 1000:
                await self._leave_after_poll_timeout()
                return
            sent_in = self._member.generation, self._rejoins
            try:
                if due is Heartbeat.KEEP_ALIVE:
                    await self._rebalancer.keep_alive()
                else:
                    self._on_work()  # makes a consumer that iterates over buffered records call `poll`
                    await self._rebalancer.heartbeat()
                answered_at = self._loop.time()
            except ClientError as error:
                if isinstance(error, BrokerError) and sent_in != (self._member.generation, self._rejoins):
                    answered_at = self._loop.time()  # what it says was true before the join that has begun meanwhile
                    continue
                if self._handle_heartbeat_error(error) is ErrorAction.REJOIN:
                    answered_at = self._loop.time()  # the coordinator knows the member, and waits for it
                if self._loop.time() - answered_at > self._config.session_timeout_ms / 1000:
                    self._lose_membership()

    def _handle_heartbeat_error(self, error: ClientError) -> ErrorAction:
        _LOG.info("%s", error)
        action = self._rebalancer.handle_error(error)
        match action:
            case ErrorAction.REJOIN if self._owned.change is Change.GIVING_UP:
                pass  # a join follows anyway
            case ErrorAction.REJOIN:
                self._owned.are_lost |= self._member.generation == NO_GENERATION and bool(self._owned.partitions())
                self._request_join()
            case ErrorAction.NEW_MEMBER:
                self._lose_membership()
            case ErrorAction.FATAL:
                self._failure = error
                self._lose_membership()
        return action

    def _lose_membership(self) -> None:
        """The coordinator has ended the membership: the owned partitions belong to other members."""
        self._member.forget()
        self._owned.are_lost = bool(self._owned.partitions())
        self._request_join()

    async def _leave_after_poll_timeout(self) -> None:
        _LOG.warning(
            "the consumer leaves group %s: it did not poll within max_poll_interval_ms (%d ms). "
            "Lower max_poll_records, or raise max_poll_interval_ms",
            self._config.group_id,
            self._config.max_poll_interval_ms,
        )
        await self._leave("it did not poll in time")
        self._lose_membership()

    async def _leave(self, reason: str) -> None:
        try:
            await self._member.leave(reason)
        except ClientError as error:
            _LOG.warning("%s", error)  # the coordinator removes the member when its session times out

    def metadata(self) -> GroupMetadata:
        """The group and the membership: the present one, or the last one after it was lost.

        The last one is refused, as it must be: the records that the caller holds belong to another member. Brokers
        accept offsets in a transaction without a membership, from clients that do not send one (KIP-447).
        """
        assert self._config.group_id is not None
        identity = self._commit_identity()
        if identity.generation == NO_GENERATION and self.is_subscribed and self._joined_as is not None:
            identity = self._joined_as
        return GroupMetadata(self._config.group_id, *identity)

    def _commit_identity(self) -> CommitIdentity:
        if not self.is_subscribed:
            return CommitIdentity(NO_GENERATION, "", None)
        return CommitIdentity(self._member.generation, self._member.member_id, self._config.group_instance_id)


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Keep asyncio from logging an error that no caller waits for any more; callers that wait have it."""
    if not task.cancelled():
        task.exception()
