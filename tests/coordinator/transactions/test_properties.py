"""The broker properties of transactions have the effect that their documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.config.errors import ConfigError
from odradek.broker.coordinator.transactions.transaction_coordinator import transaction_state_topic
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.protocol.errors import ErrorCode
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire


def test_the_topic_is_created_with_the_properties_of_the_state_log() -> None:
    properties = {
        "transaction.state.log.num.partitions": "7",
        "transaction.state.log.replication.factor": "2",
        "transaction.state.log.min.isr": "2",
        "transaction.state.log.segment.bytes": "65536",
        "transaction.state.log.load.buffer.size": "4096",
    }
    topic = transaction_state_topic(BrokerConfig.load(None, properties))

    assert (topic.partitions_count, topic.replication_factor, topic.load_buffer_bytes) == (7, 2, 4096)
    assert topic.configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "65536",
        "unclean.leader.election.enable": "false",
    }


async def test_the_topic_keeps_its_number_of_partitions_and_the_ids_their_place(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path / "data")}
    ids = [f"id {number}" for number in range(8)]
    async with (
        Broker({**properties, "transaction.state.log.num.partitions": "3"}) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        for transactional_id in ids:
            await TransactionalProducer(wire, transactional_id).start()

    async with (
        Broker({**properties, "transaction.state.log.num.partitions": "5"}) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        assert len(broker.services.metadata.image.topics[TRANSACTION_STATE].partitions) == 3
        for transactional_id in ids:
            producer = TransactionalProducer(wire, transactional_id)
            await producer.start()
            assert producer.epoch == 1, "the id was found"


async def test_the_longest_timeout_is_a_property() -> None:
    async with (
        Broker({"transaction.max.timeout.ms": "1234", "transaction.state.log.num.partitions": "1"}) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        producer = TransactionalProducer(wire)
        await producer.find_coordinator()
        assert await producer.initialize(1235) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert await producer.initialize(1234) is ErrorCode.NONE


async def test_transactions_time_out_and_ids_expire_at_their_intervals() -> None:
    properties = {
        "transaction.state.log.num.partitions": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1",
        "transactional.id.expiration.ms": "200",
    }
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        producer = TransactionalProducer(wire)
        while (await producer.start(timeout_ms=1)) or await producer.add({"t": [0]}) != {("t", 0): ErrorCode.NONE}:
            pass  # the id expired between the two
        while (await producer.describe()).error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            pass

        assert await producer.add({"t": [0]}) == {("t", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_the_two_phase_commit_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"transaction\.two\.phase\.commit\.enable must be false, because"):
        BrokerConfig.load(None, {"transaction.two.phase.commit.enable": "true"})
