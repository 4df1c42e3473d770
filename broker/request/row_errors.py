"""A defect of the broker that one partition of a request runs into: it fails that row alone, as in Kafka."""

from __future__ import annotations

from odradek.broker.replication.partition import Partition
from odradek.broker.request.services import Services
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)


def as_row_error(services: Services, partition: Partition, error: Exception) -> KafkaError:
    """Log and count an unexpected exception; return the error for its row, which tells the client no details."""
    services.metrics.unexpected_errors += 1
    _LOG.exception("partition failed", error, topic=partition.topic, partition=partition.index)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
