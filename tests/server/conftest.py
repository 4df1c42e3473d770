"""A server that a test starts with `serve`, on both event loops that the broker runs on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.security.tls.listener_tls import ListenerTls
from odradek.broker.server.connection_limits import NO_LIMIT
from odradek.broker.server.server import Server, ServerSecurity
from odradek.broker.testing.clock import ManualClock
from tests.effort import event_loops
from tests.server.serving import Handlers, Serve, Serving, default_handlers


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return event_loops()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start servers: `await serve(handlers, **{"property.name": "value"})`. Afterwards nothing of them is left."""
    gc.freeze()  # so that the collection at the end visits the objects of this test alone: 10 ms, not 370
    descriptors = _open_descriptors()
    loop = asyncio.get_running_loop()
    running: list[Serving] = []

    async def open_server(
        handlers: Handlers | None = None,
        *,
        start: bool = True,
        most_connections: int = NO_LIMIT,
        clock: ManualClock | None = None,
        tls: ListenerTls | None = None,
        **overrides: str,
    ) -> Serving:
        config = CurrentConfig(
            BrokerConfig.load(
                None, {"listeners": "PLAINTEXT://127.0.0.1:0", **{k.replace("_", "."): v for k, v in overrides.items()}}
            )
        )
        metrics, clock = Metrics(), clock or ManualClock()
        server = Server(
            config,
            handlers or default_handlers(),
            None,
            metrics,
            clock,
            lambda function: loop.run_in_executor(None, function),
            most_connections=most_connections,
            security=ServerSecurity({} if tls is None else {tls.listener: tls}),
        )
        if start:
            await server.start()
        running.append(Serving(server, metrics, clock, config))
        return running[-1]

    yield open_server
    for serving in running:
        for client in serving.clients:
            with contextlib.suppress(OSError):
                client.close()
        await serving.server.finish(0)
        assert len(serving.connections) == 0
    gc.collect()
    end = loop.time() + 20  # a transport or a thread closes its descriptor a little later
    while len(left := _open_descriptors()) > len(descriptors) and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert len(left) <= len(descriptors), left.items() - descriptors.items()
    assert len(asyncio.all_tasks(loop)) <= 1


def _open_descriptors() -> dict[str, str]:
    """Return what each descriptor of this process is open for, without pipes.

    A server has none, and those of a librdkafka client that an earlier test left come and go in its own threads.
    """
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the directory itself
            target = str(link.readlink())
            if not target.startswith("pipe:"):
                found[link.name] = target
    return found
