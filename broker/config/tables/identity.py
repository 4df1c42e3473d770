"""Properties of the broker's identity, its log directories and the tasks on them."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import Fallback, LogProperty, Property, Table
from odradek.broker.config.types import INT, LIST, LONG, STRING, nullable
from odradek.broker.storage.log_config import LogConfig

_MINUTE_MS = 60_000


# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class IdentityProperties(Table):
    """Identity of the broker."""

    node_id = Property(
        "node.id", INT, 1, at_least(0), fallback=(Fallback("broker.id"),),
        doc="The id of this broker in its cluster. It is stored in the log directories, which refuse another id.",
        differs="it has no default; a single node needs no other.",
    )
    broker_id = Property(
        "broker.id", INT, -1,
        doc="The older name of node.id. If both are set, they must be equal.",
    )
    broker_rack = Property(
        "broker.rack", nullable(STRING), None,
        doc="The location of the broker (a rack, an availability zone), which clients can see.",
    )
    cluster_id = Property(
        "cluster.id", nullable(STRING), None, own=True,
        doc="The cluster id with which empty log directories are formatted, 16 bytes in base64url. Unset: a random "
        "one. A directory of another cluster is refused.",
    )


class LogDirProperties(Table):
    """Log directories, and the intervals of the tasks on them."""

    log_dirs = Property(
        "log.dirs", LIST, None, fallback=(Fallback("log.dir"),),
        doc="The log directories, separated by commas. A new partition is created in the one with the fewest "
        "partitions. The first one has the metadata. Empty directories are formatted at the first start.",
    )
    log_dir = Property(
        "log.dir", LIST, ["/tmp/kafka-logs"],  # noqa: S108
        doc="The log directories if log.dirs is unset.",
    )
    log_flush_scheduler_interval_ms = Property(
        "log.flush.scheduler.interval.ms", LONG, 0x7FFF_FFFF_FFFF_FFFF,
        doc="The interval at which logs are checked for a flush that is due by flush.ms.",
    )
    log_flush_offset_checkpoint_interval_ms = Property(
        "log.flush.offset.checkpoint.interval.ms", INT, _MINUTE_MS, at_least(0),
        doc="The interval at which recovery points are written; after a crash, records before them are not read "
        "again.",
    )
    log_flush_start_offset_checkpoint_interval_ms = Property(
        "log.flush.start.offset.checkpoint.interval.ms", INT, _MINUTE_MS, at_least(0),
        doc="The interval at which log start offsets are written.",
    )
    replica_high_watermark_checkpoint_interval_ms = Property(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5_000,
        doc="The interval at which high watermarks are written.",
    )
    log_retention_check_interval_ms = Property(
        "log.retention.check.interval.ms", LONG, 5 * _MINUTE_MS, at_least(1),
        doc="The interval at which logs are checked for segments to delete.",
    )
    log_initial_task_delay_ms = Property(
        "log.initial.task.delay.ms", LONG, 30_000, at_least(0), own=True,
        doc="The time from the start until logs are first checked for segments to delete. Kafka has this property, "
        "undocumented.",
    )
    producer_id_expiration_ms = LogProperty(
        "producer.id.expiration.ms", INT, LogConfig.producer_id_expiration_ms, at_least(1), dynamic=True,
        doc="The time after its last write for which a partition keeps the state of an idempotent producer.",
    )
