"""The exceptions of the client, in one tree.

```
ClientError                            .retriable: whether the same call may succeed later without a change
├── ConfigurationError                 no   an invalid setting or argument (also a ValueError)
├── ClosedError                        no   used after close()
├── TransportError                     yes  no response: the broker may or may not have executed the request
│   ├── BrokerUnreachableError         yes  no connection: refused, unknown host, timeout
│   │   └── BootstrapError             yes  none of the bootstrap servers could be reached
│   ├── ConnectionLostError            yes  the connection ended with the request in flight
│   ├── RequestTimeoutError            yes  connected, and no response within request_timeout_ms
│   ├── NotKafkaError                  no   the peer uses another protocol
│   └── TlsError                       no   no encrypted connection: a certificate, or a peer without TLS
├── AuthenticationFailedError          no   the broker, or the server of its tokens, refuses the credentials
├── PossiblyPersistedError             no   records may be in the log or not; the `__cause__` says why
├── TransactionAbortedError            yes  nothing of the transaction is visible: repeat all of it
├── CommitUnknownError                 no   the transaction may be committed or not: await transaction.outcome()
├── UnsupportedVersionError            no   client and broker have no version of an API in common
├── BrokerError                        .code, and .retriable as the code says (odradek.protocol.errors.ErrorCode)
│   ├── UnknownTopicError                   UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID: no such topic or partition
│   ├── TopicExistsError                    TOPIC_ALREADY_EXISTS
│   ├── AuthorizationError                  *_AUTHORIZATION_FAILED
│   ├── RecordTooLargeError                 MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE; also before sending
│   ├── ProducerFencedError            no   PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING: make a new producer
│   ├── MembershipError                     ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_*: no longer a member
│   └── OffsetOutOfRangeError               OFFSET_OUT_OF_RANGE
├── TimeLimitError                     yes  the client stopped waiting (also a TimeoutError)
│   ├── BufferFullError                yes  send() got no memory within max_block_ms
│   └── DeliveryTimeoutError           yes  records were not written within delivery_timeout_ms
├── NoOffsetError                      no   a partition has no position, and auto_offset_reset is "none"
├── LogTruncationError                 no   records that were read are lost, and auto_offset_reset is "none"
└── CorruptRecordsError                no   fetched bytes are corrupt: checksum, format or compression
```

A record whose future fails is certainly not in the log, unless the error is a PossiblyPersistedError.

A message has three parts: the operation, with the broker or partition; the cause; a cure. `broker`, `topic` and
`partition` are attributes, too, if they are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.errors import ErrorCode


class ClientError(Exception):
    """Base of the tree above.

    `tried` and `cause` are clauses without a full stop, `cure` is a sentence or empty.
    """

    retriable = False

    def __init__(
        self,
        tried: str,
        cause: str,
        cure: str = "",
        *,
        broker: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        super().__init__(tried, cause, cure)
        self.tried = tried
        self.cause = cause
        self.cure = cure
        self.broker = broker
        self.topic = topic
        self.partition = partition

    @property
    def summary(self) -> str:
        """The message without its cure, for use in another message."""
        place = place_of(self.topic, self.partition)
        where = "".join((f" on {place}" if place else "", f" at {self.broker}" if self.broker else ""))
        return f"{self.tried}{where}: {self.cause}"

    def __str__(self) -> str:
        return f"{self.summary}{'. ' if self.cure else ''}{self.cure}"


class ConfigurationError(ClientError, ValueError):
    """A setting or an argument is invalid; nothing was sent."""


class ClosedError(ClientError):
    """The producer, consumer, admin or connection is closed."""


class TransportError(ClientError):
    """No response arrived. The broker may have executed the request or not."""

    retriable = True


class BrokerUnreachableError(TransportError):
    """The connection could not be opened."""

    is_unknown_host = False  # the name server responded that it has no such name


class BootstrapError(BrokerUnreachableError):
    """None of the bootstrap servers, or of the brokers in the metadata, could be reached."""

    failures: Sequence[ClientError] = ()  # one for each server


class ConnectionLostError(TransportError):
    """The connection ended while the request was in flight."""


class RequestTimeoutError(TransportError):
    """The broker was connected and did not respond in time."""


class NotKafkaError(TransportError):
    """The peer's bytes are not of Kafka's protocol."""

    retriable = False


class TlsError(TransportError):
    """No TLS connection: this side does not trust the broker's certificate, or the peer does not use TLS."""

    retriable = False


class AuthenticationFailedError(ClientError):
    """The broker refuses this client's credentials or certificate, or an OAuth server issues no token for them."""


class PossiblyPersistedError(ClientError):
    """The records may be in the log or not; `__cause__` is the failure after which that is unknown.

    A request with them had no response, or one that a leader may also return after an append, and no later attempt
    has shown the result. Sending the records again may duplicate them, and writes them after later records.
    """


class TransactionAbortedError(ClientError):
    """The transaction was aborted because of an error, its `__cause__`. Repeat all of it with the same producer."""

    retriable = True


class CommitUnknownError(ClientError):
    """The transaction may be committed or not; `__cause__` is the failure after which that is unknown.

    `await transaction.outcome()` resolves it. It raises this error, too, if that is not possible: now, as the
    coordinator does not respond, or ever, as a newer producer has the transactional id.
    """


class UnsupportedVersionError(ClientError):
    """Client and broker have no version of an API in common."""


class TimeLimitError(ClientError, TimeoutError):
    """The client stopped waiting; the request may still be executed."""

    retriable = True


class BufferFullError(TimeLimitError):
    """`buffer_memory` was full for `max_block_ms`: records are sent faster than the brokers acknowledge them."""


class DeliveryTimeoutError(TimeLimitError):
    """Records were not written within `delivery_timeout_ms`; PossiblyPersistedError if they may have been."""


class NoOffsetError(ClientError):
    """A partition has no position to read from, and `auto_offset_reset` is "none"."""


class LogTruncationError(ClientError):
    """Records that were read are not in the leader's log; `offset` is the first that differs, -1 if unknown."""

    offset = -1


class CorruptRecordsError(ClientError):
    """Fetched bytes are corrupt; `offset` is that of the batch that cannot be read."""

    def __init__(self, offset: int, cause: str, cure: str, *, topic: str, partition: int) -> None:
        super().__init__(f"read the batch at offset {offset}", cause, cure, topic=topic, partition=partition)
        self.offset = offset


class BrokerError(ClientError):
    """The broker returned an error code of the protocol."""

    def __init__(
        self,
        code: ErrorCode,
        tried: str,
        detail: str | None = None,
        *,
        cure: str | None = None,
        broker: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        cause = f"{code.name} ({detail})" if detail else code.name
        super().__init__(
            tried,
            cause,
            _CURES.get(code, "") if cure is None else cure,
            broker=broker,
            topic=topic,
            partition=partition,
        )
        self.code = code
        self.detail = detail
        self.retriable = code.retriable


class UnknownTopicError(BrokerError):
    """The topic or partition does not exist."""


class TopicExistsError(BrokerError):
    """A topic of that name exists already."""


class AuthorizationError(BrokerError):
    """The principal of this connection is not authorized."""


class RecordTooLargeError(BrokerError):
    """A record, or a batch with it alone, is larger than the client, topic or broker allows."""


class ProducerFencedError(BrokerError):
    """Another producer uses the transactional id, or the coordinator no longer has it: make a new producer.

    A new producer with the same transactional id fences the other one.
    """


class MembershipError(BrokerError):
    """The group has removed this member, or has a newer generation; its partitions may belong to others."""


class OffsetOutOfRangeError(BrokerError):
    """The offset is before the start of the log or after its end."""


def broker_error(
    code: int,
    tried: str,
    detail: str | None = None,
    *,
    cure: str | None = None,
    broker: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
) -> BrokerError:
    """Create the exception for an error code, of the class for that code; without `cure` it has the usual one."""
    known = ErrorCode.of(code)
    if known is ErrorCode.UNKNOWN_SERVER_ERROR and code != known:
        detail = f"error code {code}, unknown to this client{': ' + detail if detail else ''}"
    kind = _CLASSES.get(known, BrokerError)
    return kind(known, tried, detail, cure=cure, broker=broker, topic=topic, partition=partition)


def place_of(topic: str | None, partition: int | None) -> str:
    """A topic or partition in a message: `orders-3`."""
    if topic is None:
        return ""
    return topic if partition is None else f"{topic}-{partition}"


_CLASSES: dict[ErrorCode, type[BrokerError]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExistsError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLargeError,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLargeError,
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: ProducerFencedError,
    ErrorCode.ILLEGAL_GENERATION: MembershipError,
    ErrorCode.UNKNOWN_MEMBER_ID: MembershipError,
    ErrorCode.FENCED_INSTANCE_ID: MembershipError,
    ErrorCode.FENCED_MEMBER_EPOCH: MembershipError,
}

_CURES: dict[ErrorCode, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check the names of topic and partition, or create the topic",
    ErrorCode.UNKNOWN_TOPIC_ID: "The topic was deleted; a new one of the same name has another id",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic names have 1 to 249 of the characters a-z A-Z 0-9 . _ -",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Ask for an ACL on the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Ask for an ACL on the cluster",
    ErrorCode.MESSAGE_TOO_LARGE: (
        "Send smaller records, or raise max.message.bytes of the topic and max_request_size of the producer"
    ),
    ErrorCode.RECORD_LIST_TOO_LARGE: "Lower batch_size, or raise the topic's segment.bytes",
    ErrorCode.OFFSET_OUT_OF_RANGE: "Choose an offset between the beginning and the end of the partition",
    ErrorCode.ILLEGAL_GENERATION: "The group was rebalanced: poll again to get the new assignment",
    ErrorCode.UNKNOWN_MEMBER_ID: "Poll more often, or raise session_timeout_ms and max_poll_interval_ms",
    ErrorCode.FENCED_INSTANCE_ID: "Another consumer has the same group_instance_id: give each its own",
    ErrorCode.NON_EMPTY_GROUP: "Stop the members of the group first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Stop the members that read the topic first",
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the group's id",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Ask for an ACL on the group",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Wait until replicas are back in sync, or lower min.insync.replicas of the topic",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "Wait until replicas are back in sync",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader: check whether a broker is down",
    ErrorCode.INVALID_REPLICATION_FACTOR: "Request no more replicas than there are brokers",
    ErrorCode.INVALID_RECORD: "A record breaks a rule of the topic: in a compacted topic every record needs a key",
    ErrorCode.INVALID_TIMESTAMP: "The topic limits the difference between timestamps and the broker's clock",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "Choose another compression_type",
    ErrorCode.PRODUCER_FENCED: (
        "Another producer has the same transactional_id, or a transaction was open for longer than "
        "transaction_timeout_ms: make a new producer"
    ),
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: (
        "The transactional id was idle for transactional.id.expiration.ms: make a new producer"
    ),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "Lower transaction_timeout_ms; transaction.max.timeout.ms bounds it",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Ask for an ACL on the transactional id",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "Check the transactional id",
    ErrorCode.CONCURRENT_TRANSACTIONS: "Another transaction of this id is being completed: repeat the call",
    ErrorCode.KAFKA_STORAGE_ERROR: "Look for disk errors in the broker's log",
}
