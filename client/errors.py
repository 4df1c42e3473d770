"""Everything that the client raises, in one tree.

```
ClientError                            .retriable: whether the same call may succeed later, with nothing changed
├── ConfigurationError                 no   a setting or argument that cannot be (also a ValueError)
├── ClosedError                        no   used after close()
├── TransportError                     yes  no answer came: the broker may or may not have done the work
│   ├── BrokerUnreachableError         yes  no connection: refused, unknown name, no answer in time
│   │   └── BootstrapError             yes  none of the bootstrap servers could be reached
│   ├── ConnectionLostError            yes  the connection ended with the request in flight
│   ├── RequestTimeoutError            yes  connected, and no answer within request_timeout_ms
│   └── NotKafkaError                  no   what answers there speaks another protocol
├── UnsupportedVersionError            no   client and broker have no version of an API in common
├── BrokerError                        .code, and .retriable as the code says (odradek.protocol.errors.ErrorCode)
│   ├── UnknownTopicError                   UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID: no such topic or partition
│   ├── TopicExistsError                    TOPIC_ALREADY_EXISTS
│   ├── AuthorizationError                  *_AUTHORIZATION_FAILED
│   ├── RecordTooLargeError                 MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE; also before sending
│   ├── PossiblyPersistedError         no   sent again, and the leader cannot tell: it may be in the log or not
│   ├── MembershipError                     ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_*: the group went on
│   └── OffsetOutOfRangeError               OFFSET_OUT_OF_RANGE
├── TimeLimitError                     yes  the client gave up waiting (also a TimeoutError)
│   ├── BufferFullError                yes  send() found no room within max_block_ms
│   └── DeliveryTimeoutError           yes  no acknowledgement within delivery_timeout_ms: it may be in the log or not
├── NoOffsetError                      no   a partition has no position, and auto_offset_reset is "none"
├── LogTruncationError                 no   records that were read are gone, and auto_offset_reset is "none"
└── CorruptRecordsError                no   fetched bytes are not sound: checksum, format or compression
```

A message reads: what was tried, at which broker or on which partition; what went wrong; what to do about it. The parts
are attributes too: `broker`, `topic`, `partition`, where they are known.
"""

from __future__ import annotations

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
        """The message without its cure, to be part of another one."""
        place = place_of(self.topic, self.partition)
        where = "".join((f" on {place}" if place else "", f" at {self.broker}" if self.broker else ""))
        return f"{self.tried}{where}: {self.cause}"

    def __str__(self) -> str:
        return f"{self.summary}{'. ' if self.cure else ''}{self.cure}"


class ConfigurationError(ClientError, ValueError):
    """A setting or an argument that cannot be; nothing was sent."""


class ClosedError(ClientError):
    """The producer, consumer or connection was closed before."""


class TransportError(ClientError):
    """No answer came. What was asked for may have happened or not."""

    retriable = True


class BrokerUnreachableError(TransportError):
    """No connection could be made."""


class BootstrapError(BrokerUnreachableError):
    """None of the bootstrap servers, or brokers learnt from them, could be reached."""


class ConnectionLostError(TransportError):
    """The connection ended while the request was in flight."""


class RequestTimeoutError(TransportError):
    """The broker was connected and did not answer in time."""


class NotKafkaError(TransportError):
    """The peer answered with bytes that are not Kafka's."""

    retriable = False


class UnsupportedVersionError(ClientError):
    """Client and broker have no version of an API in common."""


class TimeLimitError(ClientError, TimeoutError):
    """The client gave up waiting; what it waited for may still come."""

    retriable = True


class BufferFullError(TimeLimitError):
    """`buffer_memory` was full for `max_block_ms`: the brokers take records more slowly than they are sent."""


class DeliveryTimeoutError(TimeLimitError):
    """A record was not acknowledged within `delivery_timeout_ms`. It may be in the log or not."""


class NoOffsetError(ClientError):
    """A partition has no position to read from, and `auto_offset_reset` is "none"."""


class LogTruncationError(ClientError):
    """Records that were read are not in the leader's log; `offset` is where it differs from them, -1 if not known."""

    offset = -1


class CorruptRecordsError(ClientError):
    """Fetched bytes are not sound; `offset` is where the batch begins that cannot be read."""

    def __init__(self, offset: int, cause: str, cure: str, *, topic: str, partition: int) -> None:
        super().__init__(f"read the batch at offset {offset}", cause, cure, topic=topic, partition=partition)
        self.offset = offset


class BrokerError(ClientError):
    """The broker refused, with an error code of the protocol."""

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
    """There is no such topic or partition."""


class TopicExistsError(BrokerError):
    """There is a topic of that name already."""


class AuthorizationError(BrokerError):
    """The principal of this connection may not do that."""


class RecordTooLargeError(BrokerError):
    """A record, or the smallest batch that holds it, is larger than client, topic or broker allow."""


class PossiblyPersistedError(BrokerError):
    """Records were sent again after an attempt without an answer, and their sequence does not fit the leader's log.

    They may be in the log or not. Sending them once more may double them, and puts them behind later ones.
    """


class MembershipError(BrokerError):
    """The group does not count on this member any more, or not as it was; its partitions may be another's."""


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
    """The exception for an error code, in the class that stands for it; without a `cure` it has the usual one."""
    known = ErrorCode.of(code)
    if known is ErrorCode.UNKNOWN_SERVER_ERROR and code != known:
        detail = f"error code {code}, unknown to this client{': ' + detail if detail else ''}"
    kind = _CLASSES.get(known, BrokerError)
    return kind(known, tried, detail, cure=cure, broker=broker, topic=topic, partition=partition)


def place_of(topic: str | None, partition: int | None) -> str:
    """A topic or partition as people write it: `orders-3`."""
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
    ErrorCode.ILLEGAL_GENERATION: MembershipError,
    ErrorCode.UNKNOWN_MEMBER_ID: MembershipError,
    ErrorCode.FENCED_INSTANCE_ID: MembershipError,
    ErrorCode.FENCED_MEMBER_EPOCH: MembershipError,
}

_CURES: dict[ErrorCode, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check the names of topic and partition, or create the topic",
    ErrorCode.UNKNOWN_TOPIC_ID: "The topic was deleted, or deleted and created again",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic names have 1 to 249 of the characters a-z A-Z 0-9 . _ -",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Ask for an ACL on the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Ask for an ACL on the cluster",
    ErrorCode.MESSAGE_TOO_LARGE: (
        "Send smaller records, or raise max.message.bytes of the topic and max_request_size of the producer"
    ),
    ErrorCode.RECORD_LIST_TOO_LARGE: "Lower batch_size, or raise the topic's segment.bytes",
    ErrorCode.OFFSET_OUT_OF_RANGE: "Choose an offset between the beginning and the end of the partition",
    ErrorCode.ILLEGAL_GENERATION: "The group was rebalanced; poll again, and go on with what is assigned then",
    ErrorCode.UNKNOWN_MEMBER_ID: "Poll more often, or raise session_timeout_ms and max_poll_interval_ms",
    ErrorCode.FENCED_INSTANCE_ID: "Another consumer has the same group_instance_id: give each its own",
    ErrorCode.NON_EMPTY_GROUP: "Stop the members of the group first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Stop the members that read the topic first",
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the group's id",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Ask for an ACL on the group",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Wait until replicas are back in sync, or lower min.insync.replicas of the topic",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "Wait until replicas are back in sync",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader: is a broker down?",
    ErrorCode.INVALID_REPLICATION_FACTOR: "There are fewer brokers than replicas asked for",
    ErrorCode.INVALID_RECORD: "A record breaks a rule of the topic: a compacted topic wants a key in every record",
    ErrorCode.INVALID_TIMESTAMP: "The topic bounds how far timestamps may be from the broker's clock",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "Choose another compression_type",
    ErrorCode.KAFKA_STORAGE_ERROR: "The broker's log shows what is wrong with its disk",
}
