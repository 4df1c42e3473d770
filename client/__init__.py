"""The bundled asyncio client: `Producer`, `Consumer`, their records and their errors.

Everything else in this package is how they work, for its readers and for the command line (`python -m client`); names
that are not listed here may change. Import is lazy, so that a command loads only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client.consumer import Consumer
    from client.errors import (
        AuthorizationError,
        BootstrapError,
        BrokerError,
        BrokerUnreachableError,
        BufferFullError,
        ClientError,
        ClosedError,
        ConfigurationError,
        ConnectionLostError,
        CorruptRecordsError,
        DeliveryTimeoutError,
        NoOffsetError,
        NotKafkaError,
        OffsetOutOfRangeError,
        RecordTooLargeError,
        RequestTimeoutError,
        TimeLimitError,
        TopicExistsError,
        TransportError,
        UnknownTopicError,
        UnsupportedVersionError,
    )
    from client.producer import Producer
    from client.record import ConsumerRecord, OffsetAndTimestamp, RecordMetadata, TopicPartition

__all__ = [
    "AuthorizationError",
    "BootstrapError",
    "BrokerError",
    "BrokerUnreachableError",
    "BufferFullError",
    "ClientError",
    "ClosedError",
    "ConfigurationError",
    "ConnectionLostError",
    "Consumer",
    "ConsumerRecord",
    "CorruptRecordsError",
    "DeliveryTimeoutError",
    "NoOffsetError",
    "NotKafkaError",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "Producer",
    "RecordMetadata",
    "RecordTooLargeError",
    "RequestTimeoutError",
    "TimeLimitError",
    "TopicExistsError",
    "TopicPartition",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
]

_MODULES = {
    "Consumer": "client.consumer",
    "ConsumerRecord": "client.record",
    "OffsetAndTimestamp": "client.record",
    "Producer": "client.producer",
    "RecordMetadata": "client.record",
    "TopicPartition": "client.record",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "client.errors")), name)
    return value
