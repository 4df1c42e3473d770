"""Send mutated requests to a broker for a while, and check that they have no lasting effect.

A broker responds to valid requests; for others it closes the connection and logs one line. So after any number of
mutated requests the process runs, the log contains no traceback, memory and open files have not grown, and a correct
client is served as before.

    python -m tests.fuzz.listener --seconds 600
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.fuzz.corpus import Corpus
from tests.fuzz.mutations import MUTATIONS
from tests.peers import apache, odradek
from tests.peers.clients import Outgoing, Start
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server
from tests.wire import Wire

SERVERS = {"odradek": odradek.prepare, "apache": apache.prepare}

# Automatic creation would create a topic for each mutated name; here only CreateTopics creates topics.
PROPERTIES = {"auto.create.topics.enable": "false"}

CONTROL_TOPIC = "control"
ANSWER_TIMEOUT = 0.02
"""Seconds to wait for a response: many mutated requests wait in the broker, or for more of their bytes."""


@dataclass
class Bombardment:
    """One target, and a position in the endless sequence of mutated requests of `seed`."""

    server: Server
    seed: int
    connections: int = 0
    answers: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.corpus = Corpus()
        self.corpus.keep_served(asyncio.run(_served_versions(self.server)))
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        topics = [CONTROL_TOPIC, *self.corpus.topics]
        for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
            future.result(30)
        named = self.corpus.topics[0]
        described = admin.describe_topics(TopicCollection([named]))[named].result(30)
        self.corpus.name_topic_id(base64.urlsafe_b64decode(f"{described.topic_id}=="))

    def burst(self) -> None:
        """One connection and a few requests; any response is accepted."""
        self.connections += 1
        frames = [
            self.random.choice(MUTATIONS)(self.random, self.corpus.requests) for _ in range(self.random.randint(1, 5))
        ]
        with socket.create_connection((self.server.host, self.server.port), timeout=10) as peer:
            try:
                for part in frames:
                    peer.sendall(part)
                peer.settimeout(ANSWER_TIMEOUT)
                while peer.recv(65_536):
                    self.answers += 1
            except (TimeoutError, ConnectionError):  # it waits in the broker or for more bytes, or was closed
                return

    def run(self, connections: int) -> None:
        for _ in range(connections):
            self.burst()

    def check_service(self) -> None:
        """Check that a correct client can write and read."""
        client = Confluent()
        [offset] = client.produce(self.server.bootstrap, CONTROL_TOPIC, [Outgoing(b"k", b"v")], codec="lz4")
        [record] = client.consume(self.server.bootstrap, CONTROL_TOPIC, start=Start("offset", offset), count=1)
        assert record.value == b"v"

    def check_process(self) -> None:
        assert self.server.process.poll() is None, self.server.printed()[-4000:]
        printed = self.server.printed()
        at = printed.find("Traceback")
        assert at < 0, printed[max(0, at - 500) : at + 4000]


async def _served_versions(server: Server) -> dict[int, range]:
    async with Wire(server.host, server.port) as wire:
        answer = await wire.ask(ApiVersionsRequest(), 0)
    return {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.listener", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--server", choices=SERVERS, default="odradek")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        server = SERVERS[arguments.server](Path(directory), PROPERTIES).start()
        try:
            bombardment = Bombardment(server, arguments.seed)
            end = time.monotonic() + arguments.seconds
            while time.monotonic() < end:
                bombardment.run(1000)
                bombardment.check_process()
                bombardment.check_service()
                print(
                    f"{bombardment.connections} connections, {bombardment.answers} answers, "
                    f"{server.resident_bytes() >> 20} MiB, {server.open_files()} open files",
                    flush=True,
                )
        finally:
            server.kill()


if __name__ == "__main__":
    main()
