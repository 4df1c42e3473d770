"""Tasks of a worker process reuse its clients."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client.config import ClientConfig, parse_bootstrap_servers
from odradek.client.network.connection import Connection
from odradek.pipeline.blocking_client import BlockingClient
from odradek.pipeline.worker_clients import close_idle_clients, worker_client

TIMEOUT_MS = 30_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ThreadedBroker]:
    with ThreadedBroker({"log.dirs": str(tmp_path)}) as started:
        yield started
        close_idle_clients()


def config(broker: ThreadedBroker, client_id: str = "task") -> ClientConfig:
    return ClientConfig(bootstrap_servers=parse_bootstrap_servers(broker.bootstrap), client_id=client_id)


def connection(client: BlockingClient) -> Connection:
    return client.run(client.cluster.any_connection())


def test_tasks_share_a_client_and_its_connection(broker: ThreadedBroker) -> None:
    with worker_client(config(broker), TIMEOUT_MS) as first:
        opened = connection(first)
    with worker_client(config(broker), TIMEOUT_MS) as second:
        assert second is first
        assert connection(second) is opened


def test_clients_in_use_and_clients_with_other_settings_are_not_shared(broker: ThreadedBroker) -> None:
    with worker_client(config(broker), TIMEOUT_MS) as first, worker_client(config(broker), TIMEOUT_MS) as second:
        assert second is not first
    with worker_client(config(broker, "other"), TIMEOUT_MS) as other:
        assert other not in (first, second)
    with worker_client(config(broker), TIMEOUT_MS, creates_topics=True) as writer:
        assert writer not in (first, second, other)


def test_a_task_that_writes_requests_the_metadata_of_its_topics_again(broker: ThreadedBroker) -> None:
    with worker_client(config(broker), TIMEOUT_MS, creates_topics=True) as client:
        client.run(client.cluster.topic("t", TIMEOUT_MS))
    with worker_client(config(broker), TIMEOUT_MS, creates_topics=True) as again:
        assert again is client
        assert not again.cluster.image.topics


def test_a_client_is_closed_after_an_error_and_kept_after_a_task_that_stops_early(broker: ThreadedBroker) -> None:
    def task() -> Iterator[BlockingClient]:
        with worker_client(config(broker), TIMEOUT_MS) as client:
            yield client

    stopped = task()
    first = next(stopped)
    stopped.close()
    failing = task()
    assert next(failing) is first
    opened = connection(first)
    with pytest.raises(ValueError, match="a row"):
        failing.throw(ValueError("a row"))
    assert not opened.is_open
    with worker_client(config(broker), TIMEOUT_MS) as third:
        assert third is not first


def test_clients_that_were_idle_for_too_long_are_closed(broker: ThreadedBroker) -> None:
    with worker_client(config(broker), TIMEOUT_MS) as client:
        opened = connection(client)
    close_idle_clients(3600)
    assert opened.is_open
    close_idle_clients()
    assert not opened.is_open


def test_a_connection_that_ended_while_idle_is_replaced(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    properties = {"log.dirs": str(tmp_path), "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with ThreadedBroker(properties) as broker, worker_client(config(broker), TIMEOUT_MS) as client:
        opened = connection(client)
    with ThreadedBroker(properties) as broker, worker_client(config(broker), TIMEOUT_MS) as again:
        assert again is client
        assert connection(again).is_open
        assert not opened.is_open
    close_idle_clients()


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_does_not_use_the_clients_of_its_parent(broker: ThreadedBroker) -> None:
    with worker_client(config(broker), TIMEOUT_MS) as client:
        opened = connection(client)
    child = os.fork()
    if not child:
        try:
            with worker_client(config(broker), TIMEOUT_MS) as own:
                os._exit(int(own is client or connection(own) is opened))
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    with worker_client(config(broker), TIMEOUT_MS) as again:
        assert connection(again) is opened
        again.run(again.cluster.refresh())
        assert opened.is_open
