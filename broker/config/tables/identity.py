"""Properties that say who this broker is and where it keeps its data."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least, one_of
from odradek.broker.config.property import Fallback, LogProperty, Property, Table
from odradek.broker.config.types import INT, LIST, LONG, STRING, nullable
from odradek.broker.storage.log_config import LogConfig

_MINUTE_MS = 60_000


# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class IdentityProperties(Table):
    """Who this broker is."""

    node_id = Property(
        "node.id", INT, 1, at_least(0), fallback=(Fallback("broker.id"),),
        doc="The number of this broker in its cluster. A log directory remembers it and refuses another.",
        differs="there it has no default; a single node needs no other.",
    )
    broker_id = Property("broker.id", INT, -1, doc="The older name of node.id. If both are set they must agree.")
    broker_rack = Property(
        "broker.rack", nullable(STRING), None,
        doc="Where the broker stands (a rack, an availability zone); shown to clients.",
    )
    cluster_id = Property(
        "cluster.id", nullable(STRING), None, own=True,
        doc="The id that an empty log directory is formatted with, 16 bytes in base64url. Unset: a random one. "
        "A directory of another cluster is refused.",
    )
    authorizer_class_name = Property(
        "authorizer.class.name", STRING, "", one_of(""),
        doc="Must stay empty: there are no access rules yet, and whoever sets this expects some.",
        differs="there it names a class.",
    )


class LogDirProperties(Table):
    """Where logs are kept, and how often what the broker knows of them is written down."""

    log_dirs = Property(
        "log.dirs", LIST, None, fallback=(Fallback("log.dir"),),
        doc="The directories for logs, with commas between them; a new partition goes where the fewest are. Metadata "
        "are in the first. An empty one is formatted at the first start.",
    )
    log_dir = Property("log.dir", LIST, ["/tmp/kafka-logs"], doc="Used if log.dirs is not set.")  # noqa: S108
    log_flush_scheduler_interval_ms = Property(
        "log.flush.scheduler.interval.ms", LONG, 0x7FFF_FFFF_FFFF_FFFF,
        doc="How often logs are looked at for a flush that is due by flush.ms.",
    )
    log_flush_offset_checkpoint_interval_ms = Property(
        "log.flush.offset.checkpoint.interval.ms", INT, _MINUTE_MS, at_least(0),
        doc="How often recovery points are written: what lies before them is not read again after a crash.",
    )
    log_flush_start_offset_checkpoint_interval_ms = Property(
        "log.flush.start.offset.checkpoint.interval.ms", INT, _MINUTE_MS, at_least(0),
        doc="How often log start offsets are written.",
    )
    replica_high_watermark_checkpoint_interval_ms = Property(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, doc="How often high watermarks are written."
    )
    log_retention_check_interval_ms = Property(
        "log.retention.check.interval.ms", LONG, 5 * _MINUTE_MS, at_least(1),
        doc="How often logs are looked at for segments to delete.",
    )
    log_initial_task_delay_ms = Property(
        "log.initial.task.delay.ms", LONG, 30_000, at_least(0), own=True,
        doc="How long after the start logs are first looked at for segments to delete. Kafka has it undocumented.",
    )
    producer_id_expiration_ms = LogProperty(
        "producer.id.expiration.ms", INT, LogConfig.producer_id_expiration_ms, at_least(1), dynamic=True,
        doc="How long after its last write an idempotent producer is remembered by a partition.",
    )
