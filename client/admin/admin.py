"""`Admin`: administers a cluster.

```python
async with Admin("localhost:9092") as admin:
    await admin.create_topics([NewTopic("orders", partitions=3, configs={"retention.ms": "86400000"})])
    for topic, outcome in (await admin.describe_topics(["orders", "typo"])).items():
        print(topic, outcome)                      # a TopicDescription; an UnknownTopicError
    end = TopicPartition("orders", 0)
    offsets = await admin.list_offsets({end: OffsetSpec.LATEST, ("orders", 1): 1700000000000})
    print(offsets.value(end).offset)               # raises the error of that item, if it has one
```
Errors. A call about many items returns `Results`: a dict from each item to its value or to its own `ClientError`; an
unreachable broker and a timeout are such errors, too. The call itself raises only the caller's mistakes
(ConfigurationError, ClosedError). A call with a single result raises ClientError. If a broker lacks an API, the error
is an UnsupportedVersionError, which names both.

Retriable errors are retried, after new metadata, for `timeout_ms` or else `default_api_timeout_ms`; then the item gets
the last of them. A request without a response is repeated (`odradek.client.admin.calls`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from odradek.client.admin import (
    cluster,
    configs,
    group_offsets,
    groups,
    hanging_transactions,
    log_dirs,
    offsets,
    topics,
    transactions,
)
from odradek.client.admin.arguments import ConfigChange, ConfigResource, NewPartitions, NewTopic, TransactionFilter
from odradek.client.admin.results import (
    ApiRange,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    FeatureDescription,
    GroupDescription,
    GroupListing,
    HangingTransaction,
    LogDirDescription,
    PartitionLag,
    ProducerDescription,
    ProducerIdAndEpoch,
    Results,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
)
from odradek.client.admin.security_calls import SecurityCalls
from odradek.client.config import IsolationLevel
from odradek.client.record import AnyPartition, CommittedOffset, OffsetAndTimestamp, Partition, TopicPartition


class Admin(SecurityCalls):
    """Administers a cluster; for one event loop, any number of calls at a time.

    Settings are those of Kafka's admin client (`odradek.client.config`). Every call takes `timeout_ms`.
    """

    # Topics.

    async def create_topics(
        self, new: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Results[str, CreatedTopic]:
        """Create topics, or with `validate_only` check whether they could be created. By name.

        Returns when a broker reports leaders for them.

        Errors of an item: TopicExistsError, AuthorizationError, BrokerError (INVALID_TOPIC_EXCEPTION, INVALID_CONFIG,
        INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION). Raises
        ConfigurationError if a topic is named twice.
        """
        return await topics.create_topics(self._calls, new, validate_only=validate_only, timeout_ms=timeout_ms)

    async def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> Results[str, None]:
        """Delete topics with their records. Errors of an item: UnknownTopicError, AuthorizationError, BrokerError."""
        return await topics.delete_topics(self._calls, names, by_id=False, timeout_ms=timeout_ms)

    async def delete_topics_by_id(self, ids: Iterable[str], *, timeout_ms: int | None = None) -> Results[str, None]:
        """As `delete_topics`, by topic id, so that a new topic of the same name is not deleted."""
        return await topics.delete_topics(self._calls, ids, by_id=True, timeout_ms=timeout_ms)

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicDescription]:
        """Partitions, leaders and replicas of topics. Errors of an item: UnknownTopicError, AuthorizationError."""
        return await topics.describe_topics(self._calls, names, by_id=False, timeout_ms=timeout_ms)

    async def describe_topics_by_id(
        self, ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicDescription]:
        """As `describe_topics`, by topic id."""
        return await topics.describe_topics(self._calls, ids, by_id=True, timeout_ms=timeout_ms)

    async def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """All topics, sorted by name; the internal topics of brokers only with `include_internal`."""
        return await topics.list_topics(self._calls, include_internal=include_internal, timeout_ms=timeout_ms)

    async def create_partitions(
        self, totals: Mapping[str, int | NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Add partitions to topics until each has as many as `totals` says. By name; partitions are never removed.

        Errors of an item: UnknownTopicError, BrokerError (INVALID_PARTITIONS if it has as many or more).
        """
        return await topics.create_partitions(self._calls, totals, validate_only=validate_only, timeout_ms=timeout_ms)

    async def delete_records(
        self, before: Mapping[AnyPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, int]:
        """Delete the records of each partition before an offset; -1: all up to the high watermark.

        A value is the new log start offset. Errors of an item: OffsetOutOfRangeError, UnknownTopicError,
        BrokerError (POLICY_VIOLATION for a topic that is only compacted).
        """
        wanted = {TopicPartition(*partition): offset for partition, offset in before.items()}
        return await topics.delete_records(self._calls, wanted, timeout_ms=timeout_ms)

    # Configs.

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The configs of topics, brokers and groups with their defaults; all, or those in `names`.

        Errors of an item: UnknownTopicError, AuthorizationError, BrokerError.
        """
        return await configs.describe_configs(
            self._calls,
            resources,
            names=names,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
            timeout_ms=timeout_ms,
        )

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Change single configs; the other configs keep their values. A resource gets all of its changes or none.

        Errors of an item: UnknownTopicError, AuthorizationError, BrokerError (INVALID_CONFIG).
        """
        return await configs.alter_configs(self._calls, changes, validate_only=validate_only, timeout_ms=timeout_ms)

    # Offsets.

    async def list_offsets(
        self,
        places: Mapping[AnyPartition, int],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetAndTimestamp]:
        """The offset at a place of each partition: an `OffsetSpec`, or a time in ms for the first record then or later.

        The offset is -1 if no record is that late, and with MAX_TIMESTAMP in an empty partition. With `read_committed`
        LATEST is the last stable offset. Errors of an item: UnknownTopicError, AuthorizationError, BrokerError.
        """
        wanted = {TopicPartition(*partition): place for partition, place in places.items()}
        read_committed = isolation_level == "read_committed"
        return await offsets.list_offsets(self._calls, wanted, read_committed=read_committed, timeout_ms=timeout_ms)

    # The cluster.

    async def describe_cluster(
        self, *, include_fenced: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        """The cluster's id, controller and brokers; fenced brokers only with `include_fenced`."""
        return await cluster.describe_cluster(self._calls, include_fenced=include_fenced, timeout_ms=timeout_ms)

    async def describe_features(
        self, node_id: int | None = None, *, timeout_ms: int | None = None
    ) -> FeatureDescription:
        """The features of the cluster, and the features that a broker (None: any) supports."""
        return await cluster.describe_features(self._calls, node_id=node_id, timeout_ms=timeout_ms)

    async def api_versions(self, *, timeout_ms: int | None = None) -> Results[int, tuple[ApiRange, ...]]:
        """The APIs that each broker serves, beside those of this client; by node id, sorted by key."""
        return await cluster.api_versions(self._calls, timeout_ms=timeout_ms)

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> Results[int, tuple[LogDirDescription, ...]]:
        """The log directories of these brokers, or of all, with the replicas in them and their sizes."""
        return await log_dirs.describe_log_dirs(self._calls, brokers, timeout_ms=timeout_ms)

    # Groups.

    async def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = (), timeout_ms: int | None = None
    ) -> dict[str, GroupListing]:
        """All groups, sorted by id; with `states` or `types` only the groups that are in one of them."""
        return await groups.list_groups(self._calls, states=states, types=types, timeout_ms=timeout_ms)

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """State, assignor and members of groups, with what they subscribe to and own.

        Errors of an item: AuthorizationError, BrokerError (GROUP_ID_NOT_FOUND).
        """
        return await groups.describe_groups(self._calls, group_ids, timeout_ms=timeout_ms)

    async def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Results[str, None]:
        """Delete groups that have no members, with their offsets.

        Errors of an item: AuthorizationError, BrokerError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP).
        """
        return await groups.delete_groups(self._calls, group_ids, timeout_ms=timeout_ms)

    async def list_group_offsets(
        self,
        wanted: Mapping[str, Iterable[Partition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, Results[TopicPartition, CommittedOffset | None]]:
        """The committed offsets of groups for these partitions, or (None) for all partitions with a committed offset.

        Each partition of a group has an outcome of its own; it is None without a committed offset. With
        `require_stable` the call waits for partitions with an offset in an open transaction.
        """
        partitions = {
            group: None if chosen is None else [TopicPartition(*partition) for partition in chosen]
            for group, chosen in wanted.items()
        }
        return await group_offsets.list_group_offsets(
            self._calls, partitions, require_stable=require_stable, timeout_ms=timeout_ms
        )

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[AnyPartition, int | CommittedOffset],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members; the group is created if it does not exist.

        Errors of an item: AuthorizationError, BrokerError (UNKNOWN_MEMBER_ID: the group has members).
        """
        wanted = {
            TopicPartition(*partition): CommittedOffset(at) if isinstance(at, int) else at
            for partition, at in offsets.items()
        }
        return await group_offsets.alter_group_offsets(self._calls, group_id, wanted, timeout_ms=timeout_ms)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[Partition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, None]:
        """Delete the committed offsets of partitions whose topics no member of the group subscribes to.

        Errors of an item: BrokerError (GROUP_SUBSCRIBED_TO_TOPIC, GROUP_ID_NOT_FOUND), AuthorizationError.
        """
        wanted = [TopicPartition(*partition) for partition in partitions]
        return await group_offsets.delete_group_offsets(self._calls, group_id, wanted, timeout_ms=timeout_ms)

    async def group_lag(self, group_id: str, *, timeout_ms: int | None = None) -> Results[TopicPartition, PartitionLag]:
        """The lag of a group on each partition that it owns or has committed an offset for. Raises ClientError."""
        return await group_offsets.group_lag(self._calls, group_id, timeout_ms=timeout_ms)

    # Transactions.

    async def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, TransactionListing]:
        """All transactional ids, sorted, or those that fulfil all conditions that are given. Raises ClientError.

        `longer_than_ms` leaves out younger open transactions, `pattern` ids that it does not match as a whole (RE2).
        """
        chosen = TransactionFilter(states, producer_ids, longer_than_ms, pattern)
        return await transactions.list_transactions(self._calls, chosen, timeout_ms=timeout_ms)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """States of transactional ids. Errors of an item: BrokerError (TRANSACTIONAL_ID_NOT_FOUND)."""
        return await transactions.describe_transactions(self._calls, transactional_ids, timeout_ms=timeout_ms)

    async def describe_producers(
        self, partitions: Iterable[Partition], *, broker: int | None = None, timeout_ms: int | None = None
    ) -> Results[TopicPartition, tuple[ProducerDescription, ...]]:
        """The idempotent and transactional producers of partitions, as their leaders or this broker's replicas say.

        Errors of an item: UnknownTopicError, AuthorizationError, ClientError (the broker has no replica).
        """
        wanted = [TopicPartition(*partition) for partition in partitions]
        return await transactions.describe_producers(self._calls, wanted, broker=broker, timeout_ms=timeout_ms)

    async def find_hanging_transactions(
        self,
        partitions: Iterable[Partition] | None = None,
        *,
        broker: int | None = None,
        older_than_ms: int = 15 * 60_000,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, tuple[HangingTransaction, ...]]:
        """The transactions that no coordinator will end, in partitions (None: all, or all with a replica on `broker`).

        Only those whose last record is older than `older_than_ms`, by its timestamp; -1 for all. Raises ClientError.
        """
        return await hanging_transactions.find_hanging_transactions(
            self._calls, partitions, broker=broker, older_than_ms=older_than_ms, timeout_ms=timeout_ms
        )

    async def abort_transaction(
        self, partition: Partition, producer: ProducerDescription, *, timeout_ms: int | None = None
    ) -> None:
        """Write an abort marker into a partition where the transaction of this producer hangs. Raises ClientError.

        It goes past the coordinator: for a transaction that its coordinator knows use `fence_producers`.
        """
        await transactions.abort_transaction(self._calls, TopicPartition(*partition), producer, timeout_ms=timeout_ms)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, ProducerIdAndEpoch]:
        """Abort open transactions and fence the producers. A value has the new epoch. Errors: AuthorizationError."""
        return await transactions.fence_producers(self._calls, transactional_ids, timeout_ms=timeout_ms)
