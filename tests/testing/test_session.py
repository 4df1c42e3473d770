from __future__ import annotations

import threading
from pathlib import Path

import pytest

from odradek.broker.config import ConfigError
from odradek.broker.testing.faults import BlockingFaults
from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client.errors import BrokerError
from odradek.testing.session import Session

FILES = Path("/proc/self/fd")


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def run_session() -> None:
    session = Session.open({}, None)
    with session.isolate() as kafka:
        kafka.topic("orders")
        kafka.produce("orders", [b"a"])
        assert len(kafka.records("orders")) == 1
    session.close()


@pytest.mark.skipif(not FILES.exists(), reason="this system does not list the open files of a process")
def test_nothing_is_left_of_a_session() -> None:
    run_session()  # uvloop keeps a pipe for all loops
    before = threads(), len(list(FILES.iterdir()))
    run_session()
    assert (threads(), len(list(FILES.iterdir()))) == before


def test_a_test_that_raises_is_isolated_like_any_other() -> None:
    session = Session.open({}, None)

    def fail() -> None:
        with session.isolate() as kafka:
            kafka.topic("orders")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with session.isolate() as kafka:
        assert kafka.describe().startswith("no topics and no groups")
    session.close()


def test_clients_are_closed_although_the_topics_of_a_test_cannot_be_deleted(kafka_broker: ThreadedBroker) -> None:
    session = Session.open({}, kafka_broker.bootstrap, exact_names=True)
    clients = session.kafka.aio.clients
    BlockingFaults(kafka_broker).fail("DeleteTopics", "CLUSTER_AUTHORIZATION_FAILED")
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"), session.isolate() as kafka:
        kafka.topic("orders")
    assert not vars(clients)["_started"]
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        session.close()
    assert not vars(clients)["_started"]


def test_a_session_that_does_not_start_leaves_no_thread() -> None:
    before = threads()
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        Session.open({"num.partition": 3}, None)
    assert threads() == before


def test_properties_reach_the_broker() -> None:
    session = Session.open({"num.partitions": 3, "auto.create.topics.enable": False}, None)
    assert session.properties == {"num.partitions": 3, "auto.create.topics.enable": False}
    with session.isolate() as kafka:
        assert kafka.bootstrap.startswith("127.0.0.1:")
    session.close()
