"""The faults of a run, and what they are done to: one server, or three brokers on etcd.

| fault | on | of |
|---|---|---|
| SIGKILL, then a start | the server; a coordinator | 70 %; 20 % |
| a pause of up to 1 s | the server | 30 % |
| a pause for longer than the session is certain, and shorter than the session | a coordinator | 60 % |
| a pause for longer than the session | a coordinator | 20 % |
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from random import Random
from typing import Protocol

from tests.cluster.brokers import TRANSACTION, Brokers
from tests.peers.server import Server


class Nemesis(Protocol):
    @property
    def bootstrap(self) -> str: ...

    @property
    def servers(self) -> Sequence[Server]:
        """The processes that coordinate transactions."""
        ...

    def strike(self, random: Random, over: threading.Event) -> None:
        """Do one fault; return when every process runs again."""
        ...


class OneServer:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def bootstrap(self) -> str:
        return self._server.bootstrap

    @property
    def servers(self) -> Sequence[Server]:
        return (self._server,)

    def strike(self, random: Random, over: threading.Event) -> None:
        if random.random() < 0.7:
            self._server.kill()
            self._server.start()
        else:
            self._server.pause()
            over.wait(random.uniform(0.0, 1.0))
            self._server.resume()


class Cluster:
    """Strikes the coordinator of one of these transactional ids."""

    def __init__(self, brokers: Brokers, transactional_ids: Iterable[str]) -> None:
        self._brokers = brokers
        self._transactional_ids = sorted(set(transactional_ids))

    @property
    def bootstrap(self) -> str:
        return self._brokers.bootstrap

    @property
    def servers(self) -> Sequence[Server]:
        return tuple(self._brokers.servers.values())

    def strike(self, random: Random, over: threading.Event) -> None:
        node_id = self._brokers.coordinator(random.choice(self._transactional_ids), TRANSACTION)
        kind = random.random()
        if kind < 0.6:
            self._brokers.doze(node_id)
            return
        if kind < 0.8:
            self._brokers.kill(node_id)
            self._brokers.wait_until_led_by_others([node_id])
        else:
            self._brokers.pause(node_id)
            over.wait(random.uniform(3.0, 6.0))
        self._brokers.heal()
