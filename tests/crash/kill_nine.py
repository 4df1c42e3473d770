"""Kill a broker while clients produce, restart it and check its log, many times.

Each stream has one librdkafka producer, which runs through all the kills and retries as an application would. A stream
numbers its records from 0. These rules are checked after every restart, and at the end for the whole log:

| stream | rule |
|---|---|
| both | offsets are contiguous from 0; an acknowledged record is at the offset that was acknowledged |
| `idempotent` (acks=all) | the record at offset n is the n-th one: none lost, duplicated or out of order |
| `plain` (acks=1) | every record in the log was sent; a retry may have written some twice |

SIGKILL ends the process, not the machine: written data are in the page cache and survive. The tests of `broker/storage`
that stop the disk lose them, too.

    python -m tests.crash.kill_nine --cycles 1000
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from tests.peers import apache, odradek
from tests.peers.server import Server

TIMEOUT = 30.0
SERVERS = {"odradek": odradek.prepare, "apache": apache.prepare}

# Small segments and frequent recovery points, so that a recovery late in a long run scans only new data.
PROPERTIES = {"log.segment.bytes": "1048576", "log.flush.offset.checkpoint.interval.ms": "100"}

# Reconnect at once, not after a second, and do not log failed attempts.
RECONNECT = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "enable.sparse.connections": False,
    "log_level": 0,
}
RETRY = {"retry.backoff.ms": 10, "retry.backoff.max.ms": 50, "topic.metadata.refresh.fast.interval.ms": 50}

OVERLAP = 100
"""The number of verified records that are read again after the next restart: a recovery may truncate the last ones."""

UNANSWERED = 400
"""The most records of a stream without a response; they are in several batches and requests."""

EARLY_KILL = 0.1
"""How often the broker is killed again while it starts."""


class LostError(AssertionError):
    """The log differs from the acknowledgements."""


@dataclass
class Stream:
    """One topic, its producer, and the acknowledgements."""

    bootstrap: str
    topic: str
    exact: bool
    sent: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)  # offset: record number
    verified: int = 0
    producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        settings = {"enable.idempotence": True} if self.exact else {"acks": 1, "enable.idempotence": False}
        self.producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "message.timeout.ms": 120_000,
                "linger.ms": 1,
                "batch.num.messages": 50,  # many batches: more boundaries to be killed at
                **RECONNECT,
                **RETRY,
                **settings,
            }
        )

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            self.producer.produce(self.topic, b"%09d" % number + b"." * 60, partition=0, on_delivery=self._delivered)
        self.sent += count
        self.producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise LostError(f"{self.topic}: record {_number(message)} failed: {error}")
        self.acknowledged[message.offset()] = _number(message)

    def finish(self) -> None:
        """Wait for the missing responses."""
        if unanswered := self.producer.flush(TIMEOUT):
            raise LostError(f"{self.topic}: {unanswered} records were never acknowledged")

    def verify(self, start: int) -> None:
        """Check the log from `start` to its end; earlier calls have verified the part before."""
        self.producer.poll(0)
        position = start
        for message in _read(self.bootstrap, self.topic, start):
            if message.offset() != position:
                raise LostError(f"{self.topic}: offset {message.offset()} follows {position - 1}")
            self._check(message)
            position += 1
        if beyond := [offset for offset in self.acknowledged if offset >= position]:
            raise LostError(
                f"{self.topic} ends at {position}; acknowledged: {sorted(beyond)[:5]}, {len(beyond)} in all"
            )
        self.verified = position

    def _check(self, message: Message) -> None:
        offset, number = message.offset(), _number(message)
        if self.exact and number != offset:
            raise LostError(f"{self.topic}: record {number} is at offset {offset}")
        if number >= self.sent:
            raise LostError(f"{self.topic}: record {number} at offset {offset} was never sent")
        expected = self.acknowledged.get(offset, number)
        if expected != number:
            raise LostError(f"{self.topic}: record {expected} was acknowledged at {offset}, where {number} is")


def _number(message: Message) -> int:
    value = message.value()
    assert value is not None
    return int(value[:9])


def _read(bootstrap: str, topic: str, start: int) -> Iterator[Message]:
    """The records from `start` to the current end of the log."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
        | RECONNECT
    )
    try:
        partition = TopicPartition(topic, 0, start or OFFSET_BEGINNING)
        first, end = consumer.get_watermark_offsets(partition, timeout=TIMEOUT)
        if first != 0:
            raise LostError(f"{topic} begins at offset {first}")
        if end < start:
            raise LostError(f"{topic} ends at {end}, and reached {start} before")
        consumer.assign([partition])
        position = start
        while position < end:
            messages = consumer.consume(min(500, end - position), timeout=TIMEOUT)
            if not messages:
                raise LostError(f"{topic}: nothing to read at {position}, and the end is {end}")
            for message in messages:
                if message.error() is not None:
                    raise LostError(f"{topic}: {message.error()}")
            yield from messages
            position += len(messages)
    finally:
        consumer.close()


def kill_and_check(server: Server, cycles: int, chance: random.Random, report_every: int = 0) -> dict[str, int]:
    """Run `cycles` cycles against a running server; return the number of records in each stream's log."""
    streams = [
        Stream(server.bootstrap, "idempotent", exact=True),
        Stream(server.bootstrap, "plain", exact=False),
    ]
    for cycle in range(1, cycles + 1):
        _produce_until_acknowledged(streams)
        _produce_for(streams, chance.uniform(0.0, 0.2))
        server.kill()
        for stream in streams:
            stream.producer.poll(0)  # the responses that arrived before the kill
        while chance.random() < EARLY_KILL:
            _start_and_kill(server, chance.uniform(0.0, 0.5))
        server.start()
        for stream in streams:
            stream.verify(max(0, stream.verified - OVERLAP))
        if report_every and cycle % report_every == 0:
            print(f"{cycle} kills, " + ", ".join(f"{stream.verified} {stream.topic}" for stream in streams), flush=True)
    for stream in streams:
        stream.finish()
        stream.verify(0)
        missing = set(range(stream.sent)) - set(stream.acknowledged.values())
        if missing:
            raise LostError(f"{stream.topic}: records {sorted(missing)[:5]} were never acknowledged")
    return {stream.topic: stream.verified for stream in streams}


def _produce_until_acknowledged(streams: list[Stream]) -> None:
    """Wait until each producer has reconnected and got a new acknowledgement."""
    before = [len(stream.acknowledged) for stream in streams]
    end = time.monotonic() + TIMEOUT
    while any(len(stream.acknowledged) == count for stream, count in zip(streams, before, strict=True)):
        if time.monotonic() > end:
            raise LostError(f"no record was acknowledged in {TIMEOUT} s")
        _produce_for(streams, 0.005)


def _produce_for(streams: list[Stream], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for stream in streams:
            if len(stream.producer) < UNANSWERED:
                stream.send(20)
            stream.producer.poll(0.001)


def _start_and_kill(server: Server, seconds: float) -> None:
    server.start(wait=False)
    try:
        status = server.process.wait(seconds)
    except subprocess.TimeoutExpired:
        server.kill()
    else:
        raise LostError(f"the broker ended with {status} while it started\n{server.printed()[-4000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.kill_nine", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--server", choices=SERVERS, default="odradek")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="kill-nine-") as directory:
        server = SERVERS[arguments.server](Path(directory), PROPERTIES).start()
        try:
            began = time.monotonic()
            records = kill_and_check(server, arguments.cycles, random.Random(arguments.seed), report_every=20)
        finally:
            server.kill()
        each = (time.monotonic() - began) / arguments.cycles
    print(f"{arguments.cycles} kills, {each:.2f} s each; nothing lost of {records}")


if __name__ == "__main__":
    main()
