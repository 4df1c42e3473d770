"""The cluster of a test session: started with the first test that wants it, and isolated from test to test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from odradek.broker.startup.embedded_config import Properties
from odradek.broker.testing.loop_thread import LoopThread
from odradek.testing.aio import AsyncKafka
from odradek.testing.cluster import Cluster
from odradek.testing.exact_names import ExactNames
from odradek.testing.kafka import Kafka
from odradek.testing.other_cluster import OwnNames
from odradek.testing.own_broker import OwnBroker


class Session:
    """A cluster with its handle `kafka`, until `close`. For one thread, which may not run an event loop."""

    def __init__(self, cluster: Cluster, properties: Properties) -> None:
        self.properties = dict(properties)
        self._cluster = cluster
        self._loop = LoopThread("kafka of the tests")
        self.kafka = Kafka(AsyncKafka(cluster, self._loop))
        try:
            self._loop.run(cluster.begin_session(self.kafka.aio.clients))
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, properties: Properties, bootstrap: str | None, *, exact_names: bool = False) -> Session:
        """Start a broker with these properties, or use the cluster at `bootstrap`.

        With `exact_names` that cluster is for the tests of this process alone. Raises as `OwnBroker`, and ClientError.
        """
        if bootstrap is None:
            return cls(OwnBroker(properties), properties)
        return cls(ExactNames(bootstrap) if exact_names else OwnNames(bootstrap), properties)

    @contextmanager
    def isolate(self) -> Iterator[Kafka]:
        """Run one test: afterwards the state is that of the beginning of the first one."""
        clients = self.kafka.aio.clients
        self._loop.run(self._cluster.begin_test(clients))
        try:
            yield self.kafka
        finally:
            try:
                self._loop.run(self._cluster.end_test(clients))
            finally:
                self._loop.run(clients.close())

    def close(self) -> None:
        """Remove what the session has left, and stop the broker if it is ours."""
        clients = self.kafka.aio.clients
        try:
            try:
                self._loop.run(self._cluster.end_session(clients))
            finally:
                self._loop.run(clients.close())
        finally:
            self._loop.close()
            self._cluster.close()
