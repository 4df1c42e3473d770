"""Properties of transactions: time limits, the topic of the coordinator's state, verification."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import BOOLEAN, INT, SHORT

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class TransactionProperties(Table):
    """Transactions."""

    transaction_max_timeout_ms = Property(
        "transaction.max.timeout.ms", INT, 900_000, at_least(1),
        doc="The longest time limit that a producer may request for its transactions. An open transaction holds back "
        "the consumers that read committed records only.",
    )
    transactional_id_expiration_ms = Property(
        "transactional.id.expiration.ms", INT, 604_800_000, at_least(1),
        doc="The time without a transaction after which a transactional id is forgotten. Its producer then has to "
        "begin again.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = Property(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1),
        doc="The interval at which transactions beyond their time limit are aborted.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = Property(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1),
        doc="The interval at which expired transactional ids are removed.",
    )
    transaction_state_log_num_partitions = Property(
        "transaction.state.log.num.partitions", INT, 50, at_least(1),
        doc="The number of partitions of __transaction_state when it is created. Afterwards the topic's own number "
        "counts. The default of a broker in a temporary directory is 1.",
    )
    transaction_state_log_replication_factor = Property(
        "transaction.state.log.replication.factor", SHORT, 3, at_least(1),
        doc="The number of replicas of __transaction_state when it is created. A single node creates it with one, and "
        "so do workers of one machine without etcd; a cluster creates it as soon as it has so many brokers.",
    )
    transaction_state_log_min_isr = Property(
        "transaction.state.log.min.isr", INT, 2, at_least(1),
        doc="The property min.insync.replicas of __transaction_state when it is created, at most the number of "
        "replicas.",
    )
    transaction_state_log_segment_bytes = Property(
        "transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1),
        doc="The segment size of __transaction_state when it is created; small segments are compacted and loaded "
        "faster.",
    )
    transaction_state_log_load_buffer_size = Property(
        "transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1),
        doc="The number of bytes that are read at a time when transactions are loaded; a larger batch is read as a "
        "whole.",
    )
    transaction_partition_verification_enable = Property(
        "transaction.partition.verification.enable", BOOLEAN, True, dynamic=True,
        doc="Whether a partition's first batch of a transaction is checked with the coordinator: a batch that arrives "
        "after its transaction has ended is then refused. Producers of the second protocol are always checked.",
    )
    add_partitions_to_txn_retry_backoff_ms = Property(
        "add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1),
        doc="The time until this broker repeats a check of a batch while the previous transaction is still being "
        "completed.",
    )
    add_partitions_to_txn_retry_backoff_max_ms = Property(
        "add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0),
        doc="The time for which this broker repeats such a check; then it answers CONCURRENT_TRANSACTIONS.",
    )
    transaction_two_phase_commit_enable = Property(
        "transaction.two.phase.commit.enable", BOOLEAN, False,
        doc="Whether transactions may stay open until an external coordinator ends them (KIP-939).",
        differs="it must be false, because the two-phase commit is not supported.",
    )
