"""The order of properties in DescribeConfigs: that of Java's hash tables. kafkajs reads entries by position.

Kafka puts the properties of a resource into a `java.util.HashMap` and returns the requested ones in the map's order,
whatever the order of the request (`ConfigHelperUtils.createResponseConfig`):

```
bucket   (h ^ h >>> 16) mod the table's size, h = String.hashCode(name)
size     the smallest power of two, at least 16, of which the properties fill at most three quarters
```

Within a bucket the order is that of Kafka's definitions. `_BROKER_BUCKETS` and `_TOPIC_BUCKETS` have the buckets in
which it is not alphabetical.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from odradek.broker.config.describe import ConfigRow

BROKER_PROPERTIES = 340
TOPIC_PROPERTIES = 33
GROUP_PROPERTIES = 17
"""The number of properties of each kind in Kafka 4.3.1."""

_MIN_TABLE_SIZE = 16

_BROKER_BUCKETS = """
    remote.log.metadata.manager.listener.name log.flush.interval.messages
    group.consumer.max.session.timeout.ms num.recovery.threads.per.data.dir ssl.keystore.type sasl.oauthbearer.assertion.private.key.file
    metadata.log.segment.bytes fetch.purgatory.purge.interval.requests group.streams.num.standby.replicas group.share.record.lock.duration.ms
    remote.log.manager.fetch.max.bytes.per.second group.share.session.timeout.ms
    remote.log.manager.copy.quota.window.size.seconds log.flush.offset.checkpoint.interval.ms
    sasl.oauthbearer.scope sasl.oauthbearer.jwks.endpoint.url
    group.consumer.max.size group.consumer.assignors
    max.connections delegation.token.expiry.time.ms
    remote.fetch.max.wait.ms group.streams.max.heartbeat.interval.ms
    transaction.partition.verification.enable controller.quorum.auto.join.enable
    replica.fetch.response.max.bytes group.max.session.timeout.ms group.consumer.heartbeat.interval.ms
    early.start.listeners controlled.shutdown.enable share.coordinator.state.topic.compression.codec
    log.message.timestamp.before.max.ms group.share.min.partition.max.record.locks
    transaction.abort.timed.out.transaction.cleanup.interval.ms sasl.kerberos.kinit.cmd
    log.cleaner.min.cleanable.ratio group.share.min.record.lock.duration.ms
    ssl.keystore.key sasl.client.callback.handler.class
    remote.log.storage.manager.class.name socket.receive.buffer.bytes group.streams.initial.rebalance.delay.ms
    replica.fetch.min.bytes group.streams.max.session.timeout.ms sasl.oauthbearer.sub.claim.name
    producer.purgatory.purge.interval.requests controller.quorum.voters
    group.share.max.assignment.interval.ms controller.quota.window.num
    num.io.threads group.streams.max.size sasl.login.refresh.buffer.seconds
    sasl.mechanism.controller.protocol group.share.max.record.lock.duration.ms
    share.fetch.purgatory.purge.interval.requests alter.log.dirs.replication.quota.window.num
    log.cleaner.enable controller.quorum.fetch.timeout.ms
    transaction.state.log.min.isr ssl.secure.random.implementation
    remote.log.metadata.manager.impl.prefix controller.quota.window.size.seconds
    replica.fetch.backoff.ms group.share.delivery.count.limit kafka.metrics.reporters
    socket.connection.setup.timeout.ms listeners
    remote.log.manager.expiration.thread.pool.size group.consumer.max.assignment.interval.ms
    ssl.keymanager.algorithm sasl.login.callback.handler.class
    share.coordinator.threads sasl.server.max.receive.size security.providers
    metadata.log.max.snapshot.interval.ms group.streams.max.standby.replicas
    compression.lz4.level log.roll.hours controller.quorum.fetch.max.bytes
    remote.log.metadata.manager.class.path group.consumer.max.heartbeat.interval.ms sasl.login.refresh.window.factor
    group.share.max.size controller.quorum.election.backoff.max.ms
    metadata.log.dir log.cleaner.io.buffer.load.factor transaction.max.timeout.ms
    process.roles group.max.size
    broker.id max.request.partition.size.limit offsets.topic.compression.codec sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms delegation.token.max.lifetime.ms
"""  # noqa: E501 - one line for each bucket
_TOPIC_BUCKETS = """
    segment.bytes retention.ms compression.gzip.level
    flush.messages compression.zstd.level
    max.compaction.lag.ms file.delete.delay.ms
    retention.bytes delete.retention.ms
"""


def _places(buckets: str) -> dict[str, int]:
    return {name: place for line in buckets.splitlines() for place, name in enumerate(line.split())}


_PLACES = {BROKER_PROPERTIES: _places(_BROKER_BUCKETS), TOPIC_PROPERTIES: _places(_TOPIC_BUCKETS)}


def in_kafkas_order(rows: Sequence[ConfigRow], count: int) -> list[ConfigRow]:
    """Return `rows` in the order of a `HashMap` with `count` entries."""
    size, places = _table_size(count), _PLACES.get(count, {})
    return sorted(rows, key=lambda row: (_bucket(row.name, size), places.get(row.name, 0), row.name))


def _table_size(count: int) -> int:
    size = _MIN_TABLE_SIZE
    while count > size * 3 // 4:
        size *= 2
    return size


@cache  # the names of properties and loggers are few
def _bucket(name: str, size: int) -> int:
    value = 0
    for character in name:
        value = (31 * value + ord(character)) & 0xFFFF_FFFF
    return (value ^ value >> 16) & (size - 1)
