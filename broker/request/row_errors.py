"""The error of one partition's row after a defect of the broker: the other rows succeed, as in Kafka."""

from __future__ import annotations

from odradek.broker.replication.partition import Partition
from odradek.broker.request.services import Services
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)


def as_row_error(services: Services, partition: Partition, error: Exception) -> KafkaError:
    """Log and count an unexpected exception; return the error for its row, without details for the client."""
    services.metrics.unexpected_errors += 1
    _LOG.exception("partition failed", error, topic=partition.topic, partition=partition.index)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
