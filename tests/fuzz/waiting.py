"""Send the worst requests to a broker, one kind after the other, and measure the waits of another client.

    python -m tests.fuzz.waiting --seconds 3 --megabytes 1 [--server apache] [--only "Fetch"]

The attacker is a process of its own: it sends a request, receives the response and repeats the request; if the broker
closes the connection, it reconnects. The victim alternately writes a record and requests the metadata of one topic.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import queue
import socket
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.fuzz.worst_of_transactions import worst_of_transactions
from tests.fuzz.worst_requests import MANY, WORST, Worst, framed
from tests.peers import apache, odradek
from tests.wire import Wire

SERVERS = {"odradek": odradek.prepare, "apache": apache.prepare}
PROPERTIES = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
VICTIM = "victim"
MEGABYTE = 1_000_000
PATIENCE = 60.0
"""Seconds after which the victim stops, which ends the measurement of that kind."""


class Round(NamedTuple):
    """The result of one kind: latencies of the victim in seconds, and the number of requests of the attacker."""

    waits: list[float]
    answered: int
    closed: int

    def at(self, quantile: float) -> float:
        return sorted(self.waits)[min(len(self.waits) - 1, int(len(self.waits) * quantile))]


def attack(
    host: str, port: int, worst: Worst, size: int, stop: Event, counts: multiprocessing.Queue[tuple[int, int]]
) -> None:
    """Send one kind of request until `stop` is set."""
    frame = worst.frame(size)
    answered = closed = 0
    while not stop.is_set():
        with contextlib.suppress(OSError, EOFError), socket.create_connection((host, port), timeout=60) as peer:
            try:
                peer.sendall(frame)
                answer = _receive(peer)
                answered += 1
                following = iter(lambda: frame, None) if worst.follow is None else worst.follow(answer)
                while not stop.is_set():
                    peer.sendall(next(following))
                    _receive(peer)
                    answered += 1
            except (ConnectionError, EOFError):
                closed += 1
    counts.put((answered, closed))


def _receive(peer: socket.socket) -> bytes:
    (size,) = SIZE_PREFIX.unpack(_exactly(peer, 4))
    return _exactly(peer, size)


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = peer.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


class Victim:
    """A correct client: `wait()` returns the time of one small request in seconds."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        batch = BatchBuilder()
        batch.append(1_700_000_000_000, b"k", b"v" * 100)
        data = [TopicProduceData(VICTIM, partition_data=[PartitionProduceData(0, bytes(batch.build()))])]
        self.frames = [
            framed(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=data), 9),
            framed(MetadataRequest([MetadataRequestTopic(name=VICTIM)]), 9),
        ]
        self.requests = 0

    def wait(self) -> float:
        self.requests += 1
        before = time.monotonic()
        self.socket.sendall(self.frames[self.requests % 2])
        _receive(self.socket)
        return time.monotonic() - before

    def measure(self, seconds: float) -> list[float]:
        """The waits of requests for `seconds`, at most one every two milliseconds."""
        waits = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            waits.append(self.wait())
            time.sleep(0.002)
        return waits


async def prepare(host: str, port: int, partitions: int) -> None:
    """Create the topics, `__consumer_offsets` and `__transaction_state`."""
    async with Wire(host, port) as wire:
        topics = [CreatableTopic(VICTIM, 1, 1), CreatableTopic(MANY, partitions, 1)]
        await wire.ask(CreateTopicsRequest(topics, 60_000), 7)
        for key_type in (0, 1):
            await wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)


def measure(host: str, port: int, worst: Worst, size: int, seconds: float) -> Round:
    """Measure while the attacker sends one kind for `seconds`."""
    processes = multiprocessing.get_context("fork")
    stop, counts = processes.Event(), processes.Queue()
    attacker = processes.Process(target=attack, args=(host, port, worst, size, stop, counts), daemon=True)
    victim = Victim(host, port)
    attacker.start()
    try:
        waits = victim.measure(seconds)
        stop.set()
        answered, closed = counts.get(timeout=PATIENCE)
        return Round(waits, answered, closed)
    except (TimeoutError, queue.Empty):
        return Round([PATIENCE], 0, 0)
    finally:
        attacker.kill()
        attacker.join()
        victim.socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.waiting", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--server", choices=SERVERS, default="odradek")
    arguments = parser.parse_args()
    size = int(arguments.megabytes * MEGABYTE)
    print(f"{'':48} {'median':>9} {'p99':>9} {'most':>9}  answered closed")
    kinds = [*WORST, *worst_of_transactions(arguments.megabytes)]
    waiting = [worst for worst in kinds if arguments.only in worst.name]
    while waiting:
        with tempfile.TemporaryDirectory(prefix="worst-") as directory:
            server = SERVERS[arguments.server](Path(directory), PROPERTIES).start()
            try:
                asyncio.run(prepare(server.host, server.port, arguments.partitions))
                _print("nobody", Round(Victim(server.host, server.port).measure(arguments.seconds), 0, 0))
                while waiting:
                    worst = waiting.pop(0)
                    seen = measure(server.host, server.port, worst, size, arguments.seconds)
                    _print(worst.name, seen)
                    if seen.at(1) >= PATIENCE:
                        break  # and continue with a new server
            finally:
                server.kill()


def _print(name: str, seen: Round) -> None:
    milliseconds = [f"{seen.at(quantile) * 1000:7.1f}ms" for quantile in (0.5, 0.99, 1)]
    print(f"{name:48} {' '.join(milliseconds)}  {seen.answered:8} {seen.closed:6}", flush=True)


if __name__ == "__main__":
    main()
