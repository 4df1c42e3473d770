"""`Producer`: sends records, and returns a future for each.

```python
async with Producer("localhost:9092", compression_type="lz4") as producer:
    sent = await producer.send("orders", b"value", key=b"customer 7")
    metadata = await sent          # RecordMetadata(topic, partition, offset, timestamp)
```
`send` chooses the partition, appends the record to the batch of that partition and returns. It waits only if there are
no metadata yet or no memory left, and up to 5 ms if the leader is far behind (`RecordAccumulator.throttle`). After it:
`record_accumulator` (batches) → `sender` (requests) → `delivery` (results).

Guarantees. With the defaults (acks="all", idempotence) a record whose future has a result is in the log exactly once,
and the records of one partition are in the order in which they were sent, through lost connections and new leaders. If
that cannot be verified, the future fails with PossiblyPersistedError; with any other error the record is certainly not
in the log. Without idempotence a retry may write a record twice, and with max_in_flight above 1 after later
ones.

With a `transactional_id` records are sent in transactions, `async with producer.transaction()`
(`odradek.client.transactions`); outside of one `send` raises ConfigurationError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack

from odradek.client.config import (
    Acks,
    ClientSettings,
    CompressionType,
    ProducerConfig,
    check_keywords,
    parse_bootstrap_servers,
)
from odradek.client.errors import (
    BufferFullError,
    ClosedError,
    ConfigurationError,
    RecordTooLargeError,
    UnknownTopicError,
)
from odradek.client.network.cluster import Cluster
from odradek.client.network.cluster_image import NO_LEADER, TopicMetadata
from odradek.client.network.transport import Network, TcpNetwork
from odradek.client.producer.partition_queue import PartitionQueue
from odradek.client.producer.partitioner import Partitioner, PartitionerName, topic_partitioner
from odradek.client.producer.record_accumulator import MAX_RECORD_OVERHEAD, RecordAccumulator, headers_size
from odradek.client.producer.record_arguments import RecordArguments, argument_type_error
from odradek.client.producer.sender import Sender
from odradek.client.record import RecordMetadata
from odradek.protocol.errors import ErrorCode, LocalProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE
from odradek.protocol.records.record_headers import Header

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from odradek.client.transactions.transaction import Transaction
    from odradek.client.transactions.transaction_manager import TransactionManager

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:  # a default is for type checkers alone, and Python's own TypeVar has it from 3.13 on
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

_FAILED_EXIT_MS = 5000
"""How long `async with` waits for acknowledgements when an exception ends it."""


class _Topic:
    """The queues of a topic's partitions, by index, and its partitioner."""

    __slots__ = ("_is_idempotent", "_topic_id", "partitioner", "queues")

    def __init__(self, name: str, config: ProducerConfig) -> None:
        self.queues: list[PartitionQueue] = []
        self.partitioner = topic_partitioner(name, config.partitioner, config.batch_size)
        self._is_idempotent = config.idempotent
        self._topic_id = b""

    def update(self, metadata: TopicMetadata) -> None:
        """Apply new metadata. A topic may have more partitions, or be a new one of the same name."""
        if metadata.topic_id != self._topic_id:
            self._topic_id = metadata.topic_id
            del self.queues[len(metadata.partitions) :]
            for queue in self.queues:
                queue.is_known_to_leader = not self._is_idempotent
        for partition in range(len(self.queues), len(metadata.partitions)):
            self.queues.append(PartitionQueue(metadata.name, partition, is_idempotent=self._is_idempotent))
        led = [index for index, partition in enumerate(metadata.partitions) if partition.leader != NO_LEADER]
        self.partitioner.update(len(self.queues), led or range(len(self.queues)))


class Producer(Generic[K, V]):
    """Sends records; for one event loop. Settings are those of Kafka's producer (`odradek.client.config`).

    K and V are the types of keys and values: bytes, or the arguments of `key_serializer` and `value_serializer`.
    """

    def __init__(  # noqa: PLR0913 - settings are keywords
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        max_in_flight: int = 5,
        linger_ms: float = 5,
        batch_size: int = 16384,
        max_request_size: int = 1048576,
        buffer_memory: int = 33554432,
        max_block_ms: int = 60000,
        delivery_timeout_ms: int = 120000,
        compression_type: CompressionType = "none",
        compression_level: int | None = None,
        partitioner: Partitioner | PartitionerName = "default",
        key_serializer: Callable[[K], bytes | None] | None = None,
        value_serializer: Callable[[V], bytes | None] | None = None,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60000,
        network: Network | None = None,
        **client: Unpack[ClientSettings],
    ) -> None:
        check_keywords(Producer, client)
        self._config = ProducerConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            acks=acks,
            enable_idempotence=enable_idempotence,
            max_in_flight=max_in_flight,
            linger_ms=linger_ms,
            batch_size=batch_size,
            max_request_size=max_request_size,
            buffer_memory=buffer_memory,
            max_block_ms=max_block_ms,
            delivery_timeout_ms=delivery_timeout_ms,
            compression_type=compression_type,
            compression_level=compression_level,
            partitioner=partitioner,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            **client,
        )
        self._serializes = key_serializer is not None or value_serializer is not None
        self._network = network or TcpNetwork(self._config)
        self._topics: dict[str, _Topic] = {}
        self._max_record = max_request_size - BATCH_HEADER_SIZE - MAX_RECORD_OVERHEAD
        self._is_closed = True  # until start()
        self._refuses_records = True  # while it is closed, or transactional without an open transaction
        self._transactions: TransactionManager | None = None
        self._cluster: Cluster
        self._accumulator: RecordAccumulator
        self._sender: Sender

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(None if kind is None else _FAILED_EXIT_MS)

    async def start(self) -> None:
        """Connect to the cluster and get a producer id. Does nothing if it is started already. Raises ClientError."""
        if not self._is_closed:
            return
        self._topics = {}
        self._cluster = Cluster(self._config, self._network, creates_topics=True)
        self._accumulator = RecordAccumulator(self._config)
        self._transactions = self._make_transactions()
        self._sender = Sender(self._config, self._cluster, self._accumulator, self._transactions)
        if self._transactions is not None:
            self._transactions.wait_idle = self._sender.wait_idle
        self._cluster.on_change.append(self._metadata_changed)
        try:
            await self._cluster.start()
            await self._sender.start()
        except BaseException:
            await self._cluster.close()
            raise
        self._is_closed = False
        self._refuses_records = self._transactions is not None

    def _make_transactions(self) -> TransactionManager | None:
        """The modules of transactions are loaded for a transactional producer alone."""
        if self._config.transactional_id is None:
            return None
        from odradek.client.transactions.transaction_manager import TransactionManager

        transactions = TransactionManager(self._config, self._cluster)
        transactions.on_change = self._transaction_changed
        transactions.flush = self._accumulator.flush
        return transactions

    def _transaction_changed(self) -> None:
        assert self._transactions is not None
        self._refuses_records = self._is_closed or not self._transactions.state.accepts_records
        self._sender.wakeup()

    def transaction(self) -> Transaction:
        """A transaction for `async with`, which commits at the end of the block and aborts on any exception.

        Raises ConfigurationError without `transactional_id`. Entering it raises ConfigurationError while another one is
        open, and ProducerFencedError. See `odradek.client.transactions.transaction`.
        """
        if self._config.transactional_id is None:
            raise ConfigurationError("begin a transaction", "the producer has no transactional_id", "Give it one")
        if self._is_closed or self._transactions is None:
            raise ClosedError("begin a transaction", "the producer is not open", "Use it inside `async with`")
        from odradek.client.transactions.transaction import Transaction

        return Transaction(self._transactions)

    async def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Append a record to its batch and return the future of its metadata.

        The record is copied before this returns. `timestamp` (ms since the epoch) defaults to now. Records of one task
        for one partition are written in the order of the calls. The future need not be awaited: `flush` and `close`
        wait for all; a failure is logged, once for each batch.

        Raises UnknownTopicError, RecordTooLargeError, BufferFullError and other TimeLimitErrors after `max_block_ms`,
        TypeError for an argument of a wrong type: the record is not sent then. The future fails with
        PossiblyPersistedError if the record may be in the log, with another ClientError if it certainly is not. A send
        that is cancelled may have appended the record.
        """
        routes = self._topics.get(topic)
        if routes is None or self._refuses_records:
            routes = await self._open_topic(topic)
        k: Any = key
        v: Any = value
        if self._serializes:
            k, v = self._serialize(key, value)
        try:
            if timestamp is None:
                timestamp = time_ns() // 1_000_000
            size = (len(k) if k is not None else 0) + (len(v) if v is not None else 0)
            if headers:
                size += headers_size(headers)
            if partition is None:
                partition = routes.partitioner.choose(k, v, size)
            elif not 0 <= partition < len(routes.queues):
                await self._find_partition(topic, partition)
            if size > self._max_record:
                raise self._too_large(topic, partition, size)
            queue = routes.queues[partition]
            newest = queue.open
            accumulator = self._accumulator
            future = None if accumulator.waiting else accumulator.append(queue, timestamp, k, v, headers, size)
            while future is None:
                await self._wait_for_memory(queue, size)
                self._check_accepts_records()
                future = accumulator.append(queue, timestamp, k, v, headers, size)
        except LocalProtocolError as error:
            raise ConfigurationError("send a record", str(error), topic=topic, partition=partition) from None
        except (TypeError, ValueError, AttributeError):
            self._check_types(RecordArguments(v, k, partition, headers, timestamp))
            raise  # the exception of a user's partitioner
        if queue.open is not newest and (newest is not None or accumulator.should_yield()):
            await accumulator.throttle(queue)  # once for each batch; consecutive records share one
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait for its metadata. Raises the errors of `send` and of its future."""
        return await (await self.send(topic, value, key, partition, headers, timestamp))

    async def flush(self) -> None:
        """Send everything now, and wait until every record sent before is acknowledged or has failed."""
        self._check_open()
        await self._accumulator.flush()

    async def close(self, timeout_ms: float | None = None) -> None:
        """Flush for `timeout_ms` at most, fail the remaining records and disconnect. A second call does nothing.

        An open transaction is aborted.
        """
        if self._is_closed:
            return
        self._is_closed = self._refuses_records = True
        transactions = self._transactions
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await (self._accumulator.flush() if transactions is None else transactions.close())
        except TimeoutError:
            pass  # the sender's close() fails the remaining records
        finally:
            if transactions is not None:
                await transactions.cancel()
            await self._sender.close()
            await self._cluster.close()

    def _serialize(self, key: K | None, value: V | None) -> tuple[Any, Any]:
        """Serialize key and value. The serializers get None too, as in aiokafka and in Kafka's own client."""
        of_key, of_value = self._config.key_serializer, self._config.value_serializer
        return key if of_key is None else of_key(key), value if of_value is None else of_value(value)

    def _check_types(self, arguments: RecordArguments) -> None:
        """Raise the TypeError that names an argument of a wrong type, if there is one."""
        config = self._config
        wrong = argument_type_error(
            arguments,
            key_serializer=config.key_serializer is not None,
            value_serializer=config.value_serializer is not None,
        )
        if wrong is not None:
            raise wrong from None

    async def _open_topic(self, name: str) -> _Topic:
        self._check_accepts_records()
        if not isinstance(name, str):
            raise TypeError(f"topic must be a str, not {type(name).__name__}")
        metadata = await self._cluster.topic(name, self._config.max_block_ms)
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(name, self._config)
            topic.update(metadata)
        self._check_accepts_records()  # a transaction may have ended meanwhile
        return topic

    async def _wait_for_memory(self, queue: PartitionQueue, size: int) -> None:
        try:
            await self._accumulator.wait_for_memory(size)
        except BufferFullError as error:
            leader_failure = self._cluster.leader_failure(queue.topic, queue.partition)
            if leader_failure is None:
                raise
            raise BufferFullError(error.tried, f"{error.cause}; the last attempt: {leader_failure.summary}") from None

    def _metadata_changed(self) -> None:
        known = self._cluster.image.topics
        for name, topic in self._topics.items():
            if name in known:
                topic.update(known[name])

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("send a record", "the producer is not open", "Use it inside `async with`")

    def _check_accepts_records(self) -> None:
        self._check_open()
        if self._transactions is not None:
            self._transactions.state.check_accepts("send a record")

    async def _find_partition(self, topic: str, partition: int) -> None:
        """Return if metadata that are requested now have the partition. Raises UnknownTopicError, TimeLimitError."""
        await self._cluster.topic(topic, self._config.max_block_ms, partitions=partition + 1)
        self._check_accepts_records()
        known = len(self._topics[topic].queues)
        if not 0 <= partition < known:
            raise UnknownTopicError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "send a record",
                f"the topic has {pluralize(known, 'partition')}",
                topic=topic,
                partition=partition,
            )

    def _too_large(self, topic: str, partition: int, size: int) -> RecordTooLargeError:
        return RecordTooLargeError(
            ErrorCode.MESSAGE_TOO_LARGE,
            "send a record",
            f"it has {pluralize(size, 'byte')}, and max_request_size is {self._config.max_request_size}",
            topic=topic,
            partition=partition,
        )
