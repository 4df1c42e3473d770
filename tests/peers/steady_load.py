"""A steady load: a client that produces numbers and consumes them at the same time, over TLS, until it is told to stop.

```
with SteadyLoad(Confluent(), access, topic) as load:   # two threads, a producer and a consumer
    ...                                                # what the load must not notice
assert load.received == list(range(load.sent))         # nothing lost, nothing doubled, in order
assert load.errors == []                               # nothing that the client reported
```

Producers are idempotent; consumers are assigned partition 0, without a group.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaError
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition

from odradek.broker.config.jaas import MODULES
from odradek.client import Consumer, Producer
from tests.peers.java_machine import JavaMachine

PAUSE_SECONDS = 0.005
PATIENCE_SECONDS = 30.0
_END = b"end"


class Access(NamedTuple):
    """How a client connects: with TLS, and with a mechanism of SASL if there is one. OAUTHBEARER: unsecured tokens."""

    address: str
    ca: Path
    mechanism: str | None = None
    user: str = "alice"
    password: str = ""

    @property
    def protocol(self) -> str:
        return "SSL" if self.mechanism is None else "SASL_SSL"

    @property
    def jaas(self) -> str:
        assert self.mechanism is not None
        if self.mechanism == "OAUTHBEARER":
            return f"{MODULES[self.mechanism]} required unsecuredLoginStringClaim_sub={self.user};"
        return f'{MODULES[self.mechanism]} required username="{self.user}" password="{self.password}";'


class Client(Protocol):
    """The two halves of a load; each runs on a thread of its own. They may raise anything."""

    def produce(self, access: Access, load: SteadyLoad) -> None:
        """Produce `load.next()` until it is `_END`, that included."""
        ...

    def consume(self, access: Access, load: SteadyLoad) -> None:
        """Pass each value to `load.take` until that returns False."""
        ...


class SteadyLoad:
    """A client under load from the beginning of the context to its end."""

    def __init__(self, client: Client, access: Access, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.received: list[int] = []
        self.errors: list[str] = []
        self._is_over = threading.Event()
        self._has_ended = False
        halves = {"producer": client.produce, "consumer": client.consume}
        self._threads = [
            threading.Thread(target=self._run, args=(name, half, access), daemon=True) for name, half in halves.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            if thread.is_alive():
                self.errors.append(f"sent {self.sent}, received {len(self.received)}, and did not end")

    def wait(self) -> bool:
        """Pause between two records, on a thread. Returns whether the load is over."""
        return self._is_over.wait(PAUSE_SECONDS)

    def next(self) -> bytes:
        """Return the next value to produce."""
        if self._is_over.is_set():
            self._has_ended = True
            return _END
        self.sent += 1
        return b"%d" % (self.sent - 1)

    @property
    def goes_on(self) -> bool:
        """Whether the producer has not yet taken the last value."""
        return not self._has_ended

    def take(self, value: bytes | None) -> bool:
        """Record a received value; return whether more will follow."""
        if value == _END:
            return False
        self.received.append(int(value or b""))
        return True

    def _run(self, name: str, half: Any, access: Access) -> None:
        try:
            half(access, self)
        except Exception as error:  # noqa: BLE001 - the test reports it
            self.errors.append(f"{name}: {error!r}")


class Confluent:
    """librdkafka: reports lost connections, too."""

    def produce(self, access: Access, load: SteadyLoad) -> None:
        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                load.errors.append(str(error))

        producer = ConfluentProducer({**self._settings(access, load), "enable.idempotence": True})
        while load.goes_on:
            producer.produce(load.topic, load.next(), partition=0, on_delivery=delivered)
            producer.poll(0)
            load.wait()
        assert not producer.flush(PATIENCE_SECONDS)

    def consume(self, access: Access, load: SteadyLoad) -> None:
        consumer = ConfluentConsumer({**self._settings(access, load), "group.id": "unused"})
        consumer.assign([ConfluentPartition(load.topic, 0, 0)])
        more = True
        while more:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, "no record"
            assert message.error() is None, message.error()
            more = load.take(message.value())
        consumer.close()

    def _settings(self, access: Access, load: SteadyLoad) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": access.address,
            "security.protocol": access.protocol,
            "ssl.ca.location": str(access.ca),
            "error_cb": lambda error: load.errors.append(str(error)),
        }
        if access.mechanism == "OAUTHBEARER":
            settings["enable.sasl.oauthbearer.unsecure.jwt"] = True
            settings["sasl.oauthbearer.config"] = f"principal={access.user}"
        elif access.mechanism is not None:
            settings |= {"sasl.username": access.user, "sasl.password": access.password}
        return settings | ({} if access.mechanism is None else {"sasl.mechanism": access.mechanism})


class _Asyncio:
    """A client on an event loop of its own."""

    def produce(self, access: Access, load: SteadyLoad) -> None:
        asyncio.run(self._produce(access, load))

    def consume(self, access: Access, load: SteadyLoad) -> None:
        asyncio.run(self._consume(access, load))

    async def _produce_with(self, producer: Any, load: SteadyLoad) -> None:
        sent = []
        while load.goes_on:
            sent.append(await producer.send(load.topic, load.next(), partition=0))
            await asyncio.sleep(PAUSE_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            for each in sent:
                await each

    def _produce(self, access: Access, load: SteadyLoad) -> Coroutine[Any, Any, None]:
        raise NotImplementedError

    def _consume(self, access: Access, load: SteadyLoad) -> Coroutine[Any, Any, None]:
        raise NotImplementedError


class Aiokafka(_Asyncio):
    """Does not authenticate again: the broker closes its connections, and it connects anew."""

    async def _produce(self, access: Access, load: SteadyLoad) -> None:
        async with AIOKafkaProducer(**self._settings(access), enable_idempotence=True) as producer:
            await self._produce_with(producer, load)

    async def _consume(self, access: Access, load: SteadyLoad) -> None:
        settings = self._settings(access)
        async with AIOKafkaConsumer(load.topic, **settings, auto_offset_reset="earliest") as consumer:
            while load.take((await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)).value):
                pass

    def _settings(self, access: Access) -> dict[str, Any]:
        settings = {
            "bootstrap_servers": access.address,
            "security_protocol": access.protocol,
            "ssl_context": ssl.create_default_context(cafile=str(access.ca)),
        }
        if access.mechanism is not None:
            settings |= {
                "sasl_mechanism": access.mechanism,
                "sasl_plain_username": access.user,
                "sasl_plain_password": access.password,
            }
        return settings


class Bundled(_Asyncio):
    """Our client."""

    async def _produce(self, access: Access, load: SteadyLoad) -> None:
        async with Producer(access.address, enable_idempotence=True, **self._settings(access)) as producer:
            await self._produce_with(producer, load)

    async def _consume(self, access: Access, load: SteadyLoad) -> None:
        settings = self._settings(access)
        async with Consumer(access.address, auto_offset_reset="earliest", **settings) as consumer:
            consumer.assign([(load.topic, 0)])
            while load.take((await asyncio.wait_for(anext(consumer), PATIENCE_SECONDS)).value):
                pass

    def _settings(self, access: Access) -> dict[str, Any]:
        settings = {"security_protocol": access.protocol, "ssl_truststore_location": str(access.ca)}
        if access.mechanism is not None:
            settings |= {"sasl_mechanism": access.mechanism, "sasl_jaas_config": access.jaas}
        return settings


_COMPLAINTS = {
    *("record-error-total", "record-retry-total"),
    *("connection-close-total", "failed-authentication-total", "failed-reauthentication-total"),
}
"""Metrics of Java's clients that stay 0 where they have lost no connection and sent nothing twice."""


class Java:
    """Kafka's own client; its metrics are errors if they say that it has retried, or lost a connection.

    Its batches have one record. It overlooks the answer to its SaslHandshake if that arrives together with an earlier
    one, until a batch is full (see `handlers.sasl_handshake`); on a busy machine they may.
    """

    def __init__(self, machine: JavaMachine) -> None:
        self._machine = machine

    def produce(self, access: Access, load: SteadyLoad) -> None:
        serializer = self._machine.new("org.apache.kafka.common.serialization.ByteArraySerializer")
        settings = {**self._settings(access), "batch.size": "0"}
        kafka_producer = "org.apache.kafka.clients.producer.KafkaProducer"
        producer = self._machine.new(kafka_producer, settings, serializer, serializer)
        record = self._machine.named("org.apache.kafka.clients.producer.ProducerRecord")
        sent = []
        while load.goes_on:
            sent.append(producer.send(record(load.topic, load.next())))
            load.wait()
        for each in sent:
            each.get()
        self._examine(producer, load)
        producer.close()

    def consume(self, access: Access, load: SteadyLoad) -> None:
        deserializer = self._machine.new("org.apache.kafka.common.serialization.ByteArrayDeserializer")
        settings = self._settings(access)
        kafka_consumer = "org.apache.kafka.clients.consumer.KafkaConsumer"
        consumer = self._machine.new(kafka_consumer, settings, deserializer, deserializer)
        partition = self._machine.new("org.apache.kafka.common.TopicPartition", load.topic, 0)
        consumer.assign([partition])
        consumer.seekToBeginning([partition])
        patience = self._machine.named("java.time.Duration").ofSeconds(int(PATIENCE_SECONDS))
        more = True
        while more:
            polled = consumer.poll(patience)
            assert not polled.isEmpty(), "no record"
            records = polled.iterator()
            while records.hasNext():
                more = load.take(bytes(records.next().value()))
        self._examine(consumer, load)
        consumer.close()

    def _settings(self, access: Access) -> dict[str, str]:
        settings = {
            "bootstrap.servers": access.address,
            "security.protocol": access.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(access.ca),
        }
        if access.mechanism is not None:
            settings |= {"sasl.mechanism": access.mechanism, "sasl.jaas.config": access.jaas}
        return settings

    def _examine(self, client: Any, load: SteadyLoad) -> None:
        for entry in client.metrics().entrySet():
            name, group = entry.getKey().name(), entry.getKey().group()
            if name in _COMPLAINTS and group in ("producer-metrics", "consumer-metrics"):
                value = entry.getValue().metricValue()
                if value:
                    load.errors.append(f"{group}: {name} = {value}")
