"""Every type of error, provoked by a real socket or broker, with its message.

Each test names the type that it provokes; the last one checks that none is missing.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from odradek.broker.broker import Broker
from odradek.client import (
    Admin,
    AuthorizationError,
    BrokerError,
    BrokerUnreachableError,
    BufferFullError,
    ClientError,
    ClosedError,
    ConfigResource,
    ConfigurationError,
    ConnectionLostError,
    Consumer,
    CorruptRecordsError,
    DeliveryTimeoutError,
    LogTruncationError,
    MembershipError,
    NewTopic,
    NoOffsetError,
    OffsetOutOfRangeError,
    PossiblyPersistedError,
    Producer,
    RecordTooLargeError,
    RequestTimeoutError,
    TimeLimitError,
    TopicExistsError,
    TransportError,
    UnknownTopicError,
    errors,
)
from tests.client import test_errors_of_connecting  # noqa: F401 - the types that its tests provoke count as well
from tests.client.conftest import MakeTopic
from tests.client.network import test_sasl, test_tls  # noqa: F401 - likewise
from tests.client.outcomes import test_delayed_commits  # noqa: F401 - likewise
from tests.client.provoked_errors import PROVOKED, provokes
from tests.client.security import test_tokens  # noqa: F401 - likewise
from tests.client.transactions import test_transactions_for_real  # noqa: F401 - likewise
from tests.crash.kill_at_rolls import Relay
from tests.peers.server import Server, free_port

GROUPING = {ClientError, TransportError}
"""Types that only have subclasses."""


# A broker that stops.


@pytest.mark.process
@provokes(RequestTimeoutError, TimeLimitError, BufferFullError, DeliveryTimeoutError)
async def test_a_broker_that_freezes(server: Server) -> None:
    at = rf"127\.0\.0\.1:{server.port} \(broker 1\)"
    async with (
        Admin(server.bootstrap, request_timeout_ms=2000, retry_backoff_ms=60000, retry_backoff_max_ms=60000) as admin,
        Admin(server.bootstrap) as patient,
        Producer(
            server.bootstrap,
            buffer_memory=1000,
            max_block_ms=300,
            request_timeout_ms=2000,
            delivery_timeout_ms=5000,
        ) as producer,
    ):
        await (await producer.send("t", b"before"))
        await patient.list_topics()
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(RequestTimeoutError, match=rf"^send Metadata at {at}: no response within 2000 ms$"):
                await admin.list_topics(timeout_ms=5000)
            with pytest.raises(TimeLimitError, match=r"^list topics: no response within 200 ms\. The request may"):
                await patient.list_topics(timeout_ms=200)
            sent = await producer.send("t", bytes(900), partition=0)
            with pytest.raises(BufferFullError) as full:
                await producer.send("t", b"x" * 200)
            assert str(full.value) == (
                "send a record: buffer_memory of 1000 bytes was full for 300 ms. "
                "Send more slowly, or raise buffer_memory or max_block_ms"
            )
            with pytest.raises(PossiblyPersistedError) as late:
                await sent
            assert isinstance(late.value.__cause__, DeliveryTimeoutError)
            assert str(late.value).startswith(
                "send records on t-0: not acknowledged within 5000 ms; the last attempt: "
            )
            assert str(late.value).endswith(". They may be in the log or not: check the log before you send them again")
        finally:
            server.process.send_signal(signal.SIGCONT)


@pytest.mark.process
@provokes(ConnectionLostError, BrokerUnreachableError)
async def test_a_broker_that_dies(server: Server) -> None:
    at = rf"127\.0\.0\.1:{server.port} \(broker 1\)"
    async with Admin(server.bootstrap, retry_backoff_ms=60000, retry_backoff_max_ms=60000) as admin:
        await admin.list_topics()
        server.process.send_signal(signal.SIGSTOP)
        asking = asyncio.create_task(admin.list_topics(timeout_ms=3000))
        await asyncio.sleep(0)
        await asyncio.to_thread(server.kill)
        with pytest.raises(ConnectionLostError, match=rf"^send Metadata at {at}: "):
            await asking
        broker = ConfigResource.broker(1)
        with pytest.raises(BrokerUnreachableError) as raised:
            (await admin.describe_configs([broker], timeout_ms=1000)).value(broker)
        assert re.fullmatch(
            rf"connect at {at}: connection refused\. "
            r"Is a broker listening there, and can 127\.0\.0\.1 be reached from this machine\?",
            str(raised.value),
        )


# A damaged log.


async def write(bootstrap: str, topic: str, count: int) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(count):
            await producer.send(topic, b"value %d" % number, partition=0)


@pytest.mark.process
@provokes(CorruptRecordsError)
async def test_a_log_with_a_flipped_bit(server: Server) -> None:
    await write(server.bootstrap, "t", 1)
    await write(server.bootstrap, "t", 1)
    await asyncio.to_thread(server.stop)
    [log] = (server.log_dir / "t-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[-2] ^= 1
    log.write_bytes(data)
    await asyncio.to_thread(server.start)
    async with Consumer(server.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        assert [record.offset for record in await consumer.poll()] == [0]
        with pytest.raises(CorruptRecordsError) as raised:
            await consumer.poll()
        assert raised.value.offset == 1
        assert str(raised.value) == (
            "read the batch at offset 1 on t-0: the checksum is wrong. "
            "Seek past it, and check the log with `odradek verify` at the broker"
        )


@pytest.mark.servers("apache")
@provokes(LogTruncationError)
async def test_a_log_that_was_lost(bootstrap: str, apache_server: Server, make_topic: MakeTopic) -> None:
    for _ in range(5):
        topic = await make_topic()
        await write(bootstrap, topic, 10)
        async with Consumer(bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 0)
            assert len(await consumer.poll()) == 10
            await asyncio.to_thread(apache_server.stop)
            shutil.rmtree(apache_server.log_dir / f"{topic}-0")
            await asyncio.to_thread(apache_server.start)
            try:
                await consumer.poll()
            except OffsetOutOfRangeError:
                continue  # the busy Kafka had the new log before the leader epoch that shows the loss
            except LogTruncationError as error:
                text = str(error)
                break
    assert re.fullmatch(
        rf"validate the position on {topic}-0 at {bootstrap} \(broker 1\): "
        r"records up to offset 10 were read, and the leader's log has them only up to offset \d+\. "
        r"They were lost when another replica became leader: call seek\(\) with the offset to continue at",
        text,
    )


# Errors of a broker.


@pytest.mark.servers("odradek", "apache")
@provokes(UnknownTopicError, TopicExistsError, BrokerError, RecordTooLargeError, OffsetOutOfRangeError, NoOffsetError)
async def test_errors_of_the_broker(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1, max_message_bytes=1000)
    at = rf"{bootstrap} \(broker 1\)"
    async with Admin(bootstrap) as admin:
        with pytest.raises(UnknownTopicError, match=rf"^describe a topic on no-such-topic at {at}: .*Check the names"):
            (await admin.describe_topics(["no-such-topic"])).value("no-such-topic")
        with pytest.raises(TopicExistsError, match=rf"^create a topic on {topic} at {at}: TOPIC_ALREADY_EXISTS"):
            (await admin.create_topics([NewTopic(topic)])).value(topic)
        with pytest.raises(
            BrokerError, match=rf"^create a topic on a/b at {at}: INVALID_TOPIC_EXCEPTION .*1 to 249 of"
        ):
            (await admin.create_topics([NewTopic("a/b")])).value("a/b")
    async with Producer(bootstrap) as producer:
        with pytest.raises(RecordTooLargeError, match=rf"^send records on {topic}-0 at {at}: MESSAGE_TOO_LARGE.*Send"):
            await (await producer.send(topic, bytes(5000)))
    async with Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(NoOffsetError, match=f"^read on {topic}-0: there is no position, and auto_offset_reset is"):
            await consumer.poll()
        consumer.seek((topic, 0), 7)
        with pytest.raises(OffsetOutOfRangeError, match=rf"^fetch on {topic}-0 at {at}: OFFSET_OUT_OF_RANGE\. Choose"):
            await consumer.poll()


@pytest.mark.servers("apache")
@provokes(MembershipError)
async def test_a_commit_from_outside_of_a_group_with_members(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    group = f"group-{topic}"
    async with Consumer(bootstrap, group_id=group) as member, Consumer(bootstrap, group_id=group) as other:
        await member.subscribe(topic)
        while not member.assignment():
            await member.poll(timeout_ms=100)
        with pytest.raises(MembershipError) as raised:
            await other.commit({(topic, 0): 1})
    assert str(raised.value) == (
        f"commit offsets of group {group} on {topic}-0 at {bootstrap} (broker 1): UNKNOWN_MEMBER_ID. "
        "Poll more often, or raise session_timeout_ms and max_poll_interval_ms"
    )


async def send_for_ever(producer: Producer, topic: str) -> None:
    while True:
        await (await producer.send(topic, b""))


@pytest.mark.servers("apache")
@provokes(AuthorizationError)
async def test_missing_authorization(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    deny = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.WRITE,
        AclPermissionType.DENY,
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    async with Producer(bootstrap) as producer:
        await (await producer.send(topic, b""))
        for made in admin.create_acls([deny]).values():
            await asyncio.to_thread(made.result, 30)
        with pytest.raises(AuthorizationError) as raised:
            await send_for_ever(producer, topic)  # until the broker has applied the ACL
        assert re.fullmatch(
            rf"send records on {topic}-0 at {bootstrap} \(broker 1\): TOPIC_AUTHORIZATION_FAILED.*\. "
            "Ask for an ACL on the topic",
            str(raised.value),
        )


@provokes(PossiblyPersistedError)
async def test_records_that_a_broker_has_forgotten(tmp_path: Path) -> None:
    """Three batches are written and their responses lost; after a clean stop the broker remembers only the last one."""
    port, relay_port = free_port(), free_port()
    properties = {
        "log.dirs": str(tmp_path),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay_port}",
    }
    relay = Relay(port)
    async with relay.listening(relay_port), AsyncExitStack() as stack:
        async with Broker(properties):
            producer = await stack.enter_async_context(Producer(f"127.0.0.1:{relay_port}", batch_size=100))
            await (await producer.send("t", b"first", partition=0))
            losing = asyncio.create_task(relay.lose_answers(3))
            sent = [await producer.send("t", bytes(200), partition=0) for _ in range(3)]
            await losing
        relay.pass_answers()
        async with Broker(properties):
            outcomes = await asyncio.gather(*sent, return_exceptions=True)
            assert re.fullmatch(
                rf"send records on t-0 at 127.0.0.1:{relay_port} \(broker 1\): OUT_OF_ORDER_SEQUENCE_NUMBER.*\. "
                "They may be in the log or not: check the log before you send them again",
                str(outcomes[0]),
            )
            assert isinstance(outcomes[0], PossiblyPersistedError)


# Mistakes of the user.


@provokes(ConfigurationError, ClosedError)
async def test_mistakes_of_the_user(bootstrap: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^configure the client: acks is 2\. choose one of 0, 1, -1, all$"):
        Producer(bootstrap, acks=2)  # type: ignore[arg-type]
    consumer = Consumer(bootstrap)
    with pytest.raises(ClosedError, match=r"^consume: the consumer is not open\. Use it inside `async with`$"):
        await consumer.poll()


def test_every_type_is_provoked() -> None:
    types = {cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, ClientError)}
    assert types - PROVOKED == GROUPING
