"""`Consumer`: reads assigned partitions, or those that its group assigns; the records of a partition are in order.

```python
async with Consumer("localhost:9092", auto_offset_reset="earliest") as consumer:
    consumer.assign(await consumer.partitions_for("orders"))
    async for record in consumer:
        print(record.offset, record.value)
```
The first poll, or the first step of `async for`, starts the `fetcher`, so a seek after `assign` takes effect before any
fetch. From then on the fetcher works ahead in the background, within bounds, and the `fetch_collector` returns the
fetched records. The position of a partition moves with each record that is returned, and past records that are not for
users.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from odradek.client.config import (
    ClientSettings,
    ConsumerConfig,
    GroupProtocol,
    IsolationLevel,
    check_keywords,
    parse_bootstrap_servers,
    parse_names,
)
from odradek.client.consumer.fetch_collector import FetchCollector
from odradek.client.consumer.fetch_positions import FetchPositions
from odradek.client.consumer.fetcher import Fetcher
from odradek.client.consumer.missing_topics import MissingTopics
from odradek.client.consumer.offset_lookup import OffsetLookup
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.errors import ClosedError, ConfigurationError
from odradek.client.group.rebalance_listener import RebalanceListener
from odradek.client.network.cluster import Cluster
from odradek.client.network.transport import Network, TcpNetwork
from odradek.client.record import (
    AnyPartition,
    CommittedOffset,
    ConsumerRecord,
    GroupMetadata,
    OffsetAndTimestamp,
    Partition,
    TopicPartition,
)
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from odradek.client.group.group import Group

_NOTHING_TO_READ = "Call `await consumer.subscribe(topics)` or `consumer.assign(partitions)` first"


class Consumer:
    """Reads partitions; for one event loop, one task at a time.

    Settings are those of Kafka's consumer (`odradek.client.config`).
    """

    def __init__(  # noqa: PLR0913 - settings are keywords
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        auto_offset_reset: str = "latest",
        isolation_level: IsolationLevel = "read_uncommitted",
        check_crcs: bool = True,
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 52428800,
        max_partition_fetch_bytes: int = 1048576,
        max_poll_records: int = 500,
        default_api_timeout_ms: int = 60000,
        group_id: str | None = None,
        group_instance_id: str | None = None,
        group_protocol: GroupProtocol = "classic",
        group_remote_assignor: str | None = None,
        partition_assignment_strategy: str | Sequence[str] = ("range", "cooperative-sticky"),
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: int = 5000,
        session_timeout_ms: int = 45000,
        heartbeat_interval_ms: int = 3000,
        max_poll_interval_ms: int = 300000,
        network: Network | None = None,
        **client: Unpack[ClientSettings],
    ) -> None:
        check_keywords(Consumer, client)
        self._config = ConsumerConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            auto_offset_reset=auto_offset_reset,
            isolation_level=isolation_level,
            check_crcs=check_crcs,
            fetch_min_bytes=fetch_min_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            fetch_max_bytes=fetch_max_bytes,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            max_poll_records=max_poll_records,
            default_api_timeout_ms=default_api_timeout_ms,
            group_id=group_id,
            group_instance_id=group_instance_id,
            group_protocol=group_protocol,
            group_remote_assignor=group_remote_assignor,
            partition_assignment_strategy=parse_names(partition_assignment_strategy),
            enable_auto_commit=enable_auto_commit,
            auto_commit_interval_ms=auto_commit_interval_ms,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            **client,
        )
        self._network = network or TcpNetwork(self._config)
        self._timeout_ms = default_api_timeout_ms
        self._subscription = SubscriptionState()
        self._is_closed = True  # until start()
        self._is_leaving = False  # closed except for the group, whose listener may still commit
        self._cluster: Cluster
        self._lookup: OffsetLookup
        self._positions: FetchPositions
        self._fetcher: Fetcher
        self._collector: FetchCollector
        self._group: Group | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(commits=kind is None)

    async def start(self) -> None:
        """Connect to the cluster. Does nothing if the consumer is started already. Raises ClientError."""
        if not self._is_closed:
            return
        self._subscription = SubscriptionState()
        self._cluster = Cluster(self._config, self._network)
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            raise
        self._lookup = OffsetLookup(self._config, self._cluster)
        self._positions = FetchPositions(self._config, self._lookup, self._subscription)
        self._fetcher = Fetcher(self._config, self._cluster, self._subscription, self._positions)
        self._collector = FetchCollector(self._subscription, self._fetcher, self._poll_group)
        if self._config.group_id is not None:
            from odradek.client.group.group import Group  # takes 2 MB, which a consumer without a group saves

            self._group = Group(
                self._config, self._cluster, self._subscription, self._assignment_changed, self._collector.interrupt
            )
            self._positions.committed_offsets = self._group.offsets.committed
        self._cluster.on_change.append(MissingTopics(self._cluster, self._subscribed, self._assigned).check)
        self._is_closed = False

    async def close(self) -> None:
        """Stop fetching, commit what was returned (`enable_auto_commit`), leave the group and disconnect.

        The listener's `on_revoked` is called before the consumer leaves the group; it may commit.

        `async for` ends, and a waiting poll raises ClosedError. If an exception ends `async with`, nothing is
        committed: the records of the last poll may not have been processed.
        """
        await self._close(commits=True)

    async def _close(self, *, commits: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._fetcher.close()
            if self._group is not None:
                self._is_leaving = True
                await self._group.close(commits=commits)
        finally:
            self._is_leaving = False
            if self._group is not None:
                self._group.stop()
            await self._cluster.close()

    # Assignment and subscription.

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions and no others; those that were assigned before keep their positions.

        With a `group_id` a new partition begins at the offset that the group committed, if there is one.
        """
        self._check_open()
        if self._group is not None and self._group.is_subscribed:
            raise ConfigurationError("assign partitions", "the group assigns them", "Call unsubscribe() first")
        self._subscription.assign(TopicPartition(*partition) for partition in partitions)
        self._assignment_changed()

    async def subscribe(
        self, topics: str | Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """Read the partitions that the group assigns to this member, of these topics.

        A pattern stands for all topics whose whole names match it. The next poll joins the group; `listener` is called
        when partitions are assigned and revoked. The consumers of a group share the partitions; each group gets all
        records. Raises ConfigurationError without `group_id`.
        """
        group = self._require_group("subscribe")
        pattern = topics if isinstance(topics, re.Pattern) else None
        names = [] if isinstance(topics, re.Pattern) else [topics] if isinstance(topics, str) else list(topics)
        if not group.is_subscribed:
            self._subscription.assign(())
            self._assignment_changed()
        await group.subscribe(names, pattern, listener)
        self._cluster.track("subscribed", names)

    async def unsubscribe(self) -> None:
        """Revoke all partitions and leave the group at once."""
        await self._require_group("unsubscribe").subscribe((), None, None)
        self._cluster.track("subscribed", ())

    def assignment(self) -> list[TopicPartition]:
        """The assigned partitions, sorted."""
        return sorted(self._subscription.states)

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic. Raises UnknownTopicError, TimeLimitError."""
        self._check_open()
        metadata = await self._cluster.topic(topic, self._timeout_ms, keep=False)
        return [TopicPartition(topic, index) for index in range(len(metadata.partitions))]

    def pause(self, *partitions: Partition) -> None:
        """Neither return nor fetch records of these partitions, or of all, until `resume`."""
        self._set_paused(partitions, is_paused=True)

    def resume(self, *partitions: Partition) -> None:
        """Undo `pause`."""
        self._set_paused(partitions, is_paused=False)

    # Committed offsets.

    async def commit(self, offsets: Mapping[AnyPartition, int | CommittedOffset] | None = None) -> None:
        """Commit these offsets (of the next record to read), or the positions of all assigned partitions.

        Raises MembershipError if the group has removed this member, and after `default_api_timeout_ms` other
        BrokerErrors, TransportErrors and TimeLimitError.
        """
        group = self._require_group("commit", may_leave=True)
        wanted = self._subscription.consumed_offsets(self._subscription.states)
        if offsets is not None:
            wanted = {
                TopicPartition(*partition): CommittedOffset(at) if isinstance(at, int) else at
                for partition, at in offsets.items()
            }
        await group.commit(wanted, self._timeout_ms)

    async def committed(self, partitions: Iterable[Partition]) -> dict[TopicPartition, CommittedOffset | None]:
        """The offsets that the group committed for these partitions; None where there is none. Raises ClientError."""
        group = self._require_group("read committed offsets", may_leave=True)
        return await group.offsets.committed([TopicPartition(*partition) for partition in partitions], self._timeout_ms)

    def group_metadata(self) -> GroupMetadata:
        """The consumer's group and its present membership, for `Transaction.send_offsets`."""
        return self._require_group("send offsets").metadata()

    # Positions and offsets.

    async def position(self, partition: Partition) -> int:
        """The offset of the next record of a partition; looked up if there is none yet. Raises ClientError."""
        self._check_open(may_leave=True)
        return await self._positions.position(self._subscription.state(TopicPartition(*partition)))

    def lag(self, partition: Partition) -> int | None:
        """The number of offsets from the position to the end of a partition, as of the last fetch; None before."""
        return self._subscription.state(TopicPartition(*partition)).lag()

    def seek(self, partition: Partition, offset: int) -> None:
        """Continue at `offset` of an assigned partition. If it is out of range, `auto_offset_reset` applies."""
        self._check_open()
        if not 0 <= offset < 1 << 63:
            reason = f"offset {offset} is not from 0 to 2^63 - 1"
            raise ConfigurationError("seek", reason, "Use seek_to_beginning or seek_to_end")
        self._subscription.seek(self._subscription.state(TopicPartition(*partition)), offset)
        self._fetcher.wakeup()

    async def seek_to_beginning(self, *partitions: Partition) -> None:
        """Continue at the first record of these partitions, or of all. Raises ClientError."""
        await self._seek_to(EARLIEST, partitions)

    async def seek_to_end(self, *partitions: Partition) -> None:
        """Continue after the last record of these partitions, or of all. Raises ClientError."""
        await self._seek_to(LATEST, partitions)

    async def seek_to_timestamp(self, timestamp: int, *partitions: Partition) -> None:
        """Continue at the first record with this timestamp (ms) or a later one, or at the end if there is none."""
        await self._seek_to(timestamp, partitions)

    async def beginning_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition, assigned or not. Raises ClientError."""
        return await self._offsets(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition that may be read, assigned or not. Raises ClientError."""
        return await self._offsets(partitions, LATEST)

    async def offsets_for_times(
        self, times: Mapping[AnyPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after its time (ms), or None. Raises ClientError."""
        self._check_open()
        wanted = {TopicPartition(*partition): time for partition, time in times.items()}
        found = await self._lookup.find(wanted, self._timeout_ms)
        return {partition: None if at.offset < 0 else at for partition, at in found.items()}

    # Records.

    async def poll(self, timeout_ms: float | None = None, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return up to `max_records` (by default `max_poll_records`) records as soon as there are any.

        After `timeout_ms` it returns []; without it, it waits as long as necessary. Raises CorruptRecordsError,
        BrokerError, and with `auto_offset_reset="none"` OffsetOutOfRangeError and NoOffsetError; the next poll tries
        again.
        """
        self._check_open()
        self._fetcher.start()
        limit = max_records or self._config.max_poll_records
        if self._group is None and (records := self._collector.collect_buffered(limit)):
            return records  # without a group no timer is needed, which costs as much as 20 records
        return await self._collector.collect(limit, timeout_ms)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        state = self._subscription.current
        if state is not None and (record := state.next_record()) is not None:
            return record
        if self._is_closed:
            raise StopAsyncIteration
        self._fetcher.start()
        try:
            return await self._collector.next_record()
        except ClosedError:
            if self._is_closed:
                raise StopAsyncIteration from None
            raise

    async def _poll_group(self) -> None:
        """Join, rebalance and commit, between two records. Raises ClosedError, and the errors of the group.

        Raises ConfigurationError if there is nothing to read, as `KafkaConsumer.poll` does: it would wait for ever.
        """
        self._check_open()
        if self._group is not None and self._group.is_subscribed:
            await self._group.poll()
            self._check_open()
        elif not self._subscription.states:
            raise ConfigurationError("consume", "no topic is subscribed, no partition assigned", _NOTHING_TO_READ)

    def _assignment_changed(self) -> None:
        self._subscription.current = None
        self._cluster.track("assigned", self._subscription.topics())
        self._fetcher.wakeup()

    def _subscribed(self) -> Collection[str]:
        return () if self._group is None else self._group.topics

    def _assigned(self) -> Collection[TopicPartition]:
        return self._subscription.states.keys()

    def _require_group(self, tried: str, *, may_leave: bool = False) -> Group:
        self._check_open(may_leave=may_leave)
        if self._group is None:
            raise ConfigurationError(tried, "there is no group_id", "Give the consumer one")
        return self._group

    def _check_open(self, *, may_leave: bool = False) -> None:
        """Raise ClosedError; with `may_leave` not while the listener runs at close."""
        if self._is_closed and not (may_leave and self._is_leaving):
            raise ClosedError("consume", "the consumer is not open", "Use it inside `async with`")

    def _set_paused(self, partitions: Iterable[Partition], *, is_paused: bool) -> None:
        self._check_open()
        for state in self._subscription.chosen(partitions):
            state.is_paused = is_paused
        self._fetcher.wakeup()
        self._collector.interrupt()

    async def _seek_to(self, time: int, partitions: Iterable[Partition]) -> None:
        self._check_open()
        await self._positions.seek_to_time(self._subscription.chosen(partitions), time)
        self._fetcher.wakeup()

    async def _offsets(self, partitions: Iterable[Partition], time: int) -> dict[TopicPartition, int]:
        self._check_open()
        wanted = {TopicPartition(*partition): time for partition in partitions}
        found = await self._lookup.find(wanted, self._timeout_ms)
        return {partition: at.offset for partition, at in found.items()}
