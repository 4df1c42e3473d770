"""Send the worst requests of every API to a broker, one kind after the other, and measure the waits of another client.

    python -m tests.fuzz.waiting --seconds 1 --megabytes 1 [--listener SSL] [--pipelined 1 8 32] [--only "Fetch"]

The attacker is a process of its own (`attack`). The victim, on the same listener, alternately writes a record and
requests the metadata of one topic. The goal: p99 at most 50 ms, and the longest wait 200 ms; rows that miss it are
marked. `--server apache` measures Apache Kafka, on its one listener.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import queue
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.fuzz.attack import LISTENERS, Endpoint, attack, properties, receive
from tests.fuzz.worst_of_the_rest import WORST_OF_THE_REST
from tests.fuzz.worst_of_transactions import worst_of_transactions
from tests.fuzz.worst_requests import MANY, WORST, Worst, framed
from tests.peers import apache, odradek
from tests.peers.server import free_port
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
GOAL = (0.05, 0.2)
"""The p99 and the longest wait of the victim, in seconds."""


def every_kind(megabytes: float) -> list[Worst]:
    """All kinds of requests, at least one of every API that is served."""
    return [*WORST, *worst_of_transactions(megabytes), *WORST_OF_THE_REST]


class Round(NamedTuple):
    """The result of one kind: latencies of the victim in seconds, and the number of requests of the attacker."""

    waits: list[float]
    answered: int
    closed: int

    @property
    def misses(self) -> bool:
        return self.at(0.99) > GOAL[0] or self.at(1) > GOAL[1]

    def at(self, quantile: float) -> float:
        return sorted(self.waits)[min(len(self.waits) - 1, int(len(self.waits) * quantile))]


class Victim:
    """A correct client: `wait()` returns the time of one small request in seconds."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.socket = endpoint.connect(PATIENCE)
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
        receive(self.socket)
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


def measure(endpoint: Endpoint, worst: Worst, size: int, pipelined: int, seconds: float) -> Round:
    """Measure while the attacker sends one kind for `seconds`."""
    processes = multiprocessing.get_context("fork")
    stop, counts = processes.Event(), processes.Queue()
    arguments = (endpoint, worst, size, pipelined, stop, counts)
    attacker = processes.Process(target=attack, args=arguments, daemon=True)
    try:
        victim = Victim(endpoint)
    except TimeoutError:
        return Round([PATIENCE], 0, 0)
    attacker.start()
    try:
        waits = victim.measure(seconds)
        stop.set()
        try:
            answered, closed = counts.get(timeout=PATIENCE / 10)
        except queue.Empty:  # it waits for an answer
            answered, closed = 0, 0
        return Round(waits, answered, closed)
    except TimeoutError:
        return Round([PATIENCE], 0, 0)
    finally:
        attacker.kill()
        attacker.join()
        victim.socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.waiting", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--pipelined", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--listener", choices=LISTENERS, nargs="+", default=list(LISTENERS))
    parser.add_argument("--only", default="")
    parser.add_argument("--server", choices=SERVERS, default="odradek")
    arguments = parser.parse_args()
    kinds = [worst for worst in every_kind(arguments.megabytes) if arguments.only in worst.name]
    for listener in arguments.listener if arguments.server == "odradek" else LISTENERS[:1]:
        print(
            f"{listener:46}"
            + "".join(f" {f'{count} pipelined: p99, most, answered':>34}" for count in arguments.pipelined)
        )
        waiting = [*kinds]
        while waiting:
            with tempfile.TemporaryDirectory(prefix="worst-") as directory:
                _measure_some(waiting, listener, Path(directory), arguments)


def _measure_some(waiting: list[Worst], listener: str, directory: Path, arguments: argparse.Namespace) -> None:
    """Measure kinds with a new server until none is left, or the server does not answer."""
    ports = {each: free_port() for each in LISTENERS}
    more = properties(ports, directory) if arguments.server == "odradek" else {}
    server = SERVERS[arguments.server](directory / "server", PROPERTIES | more, port=ports["PLAINTEXT"]).start()
    endpoint = Endpoint(listener, server.host, ports[listener], directory / "ca.pem")
    try:
        asyncio.run(prepare(server.host, server.port, arguments.partitions))
        _print("nobody", [Round(Victim(endpoint).measure(arguments.seconds), 0, 0)])
        while waiting:
            worst = waiting.pop(0)
            size = int(arguments.megabytes * MEGABYTE)
            rounds = []
            for pipelined in arguments.pipelined:
                rounds.append(measure(endpoint, worst, size, pipelined, arguments.seconds))
                if rounds[-1].at(1) >= PATIENCE:
                    break
            _print(worst.name, rounds)
            if rounds[-1].at(1) >= PATIENCE:
                return
    finally:
        server.kill()


def _print(name: str, rounds: list[Round]) -> None:
    print(f"{name:46} {' '.join(_cells(rounds))}", flush=True)


def _cells(rounds: list[Round]) -> Iterator[str]:
    for seen in rounds:
        mark = "*" if seen.misses else " "
        yield f"{seen.at(0.99) * 1000:9.1f} {seen.at(1) * 1000:9.1f}{mark} {seen.answered:6} {seen.closed:6}"


if __name__ == "__main__":
    main()
