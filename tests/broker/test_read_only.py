"""A read-only broker: it serves existing data, refuses to change it, and changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.requests import (
    batch,
    create,
    fetch,
    new_producer_id,
    produce,
    produce_request,
    values_in,
)
from tests.storage.logs import names_in
from tests.storage.offline.test_stored_log_dir import fill_indexes_with_garbage, spoil_everything_derived, state_of
from tests.storage.test_golden import HERE, expected
from tests.wire import Wire


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))


def as_is(path: Path) -> None:
    """Nothing is spoiled."""


@pytest.mark.parametrize("spoil", [as_is, fill_indexes_with_garbage, spoil_everything_derived])
async def test_a_directory_that_kafka_wrote_is_served_and_stays_as_it_is(golden: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(golden)
    before = state_of(golden)
    async with Broker({"log.dirs": str(golden)}, read_only=True) as broker, Wire("127.0.0.1", broker.port) as wire:
        for topic in ("codec-zstd", "rolled", "compacted"):
            wanted = expected(f"{topic}.records")
            row = await fetch(wire, topic, wanted[-1]["offset"])
            assert row.high_watermark == wanted[-1]["offset"] + 1
            assert len(values_in(row)) > 0
        row = await produce(wire, "codec-zstd", batch(b"no"))
        assert row.error_code == ErrorCode.POLICY_VIOLATION
        assert row.error_message == "this broker only reads its log directory (--read-only)"
        assert state_of(golden) == before
    assert state_of(golden) == before


async def test_requests_that_change_something_are_refused(golden: Path) -> None:
    before = state_of(golden)
    async with Broker({"log.dirs": str(golden)}, read_only=True) as broker, Wire("127.0.0.1", broker.port) as wire:
        with pytest.raises(AssertionError, match="error_code=44"):
            await create(wire, "new")
        request = MetadataRequest([MetadataRequestTopic(name="unheard-of")], allow_auto_topic_creation=True)
        (topic,) = (await wire.ask(request, 12)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await new_producer_id(wire) >= 0
        await wire.send(produce_request("rolled", batch(b"no"), acks=0), 9)
        assert await wire.is_closed_by_peer()
    assert state_of(golden) == before


async def test_a_directory_in_use_is_served_with_its_metadata(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        topic_id = await create(wire, "t", partitions=3, cleanup_policy="compact")
        await produce(wire, "t", batch(b"a", b"b"))
        async with Broker(properties, read_only=True) as reader, Wire("127.0.0.1", reader.port) as reading:
            (topic,) = (await reading.ask(MetadataRequest([MetadataRequestTopic(name="t")]), 12)).topics
            assert (topic.topic_id, len(topic.partitions)) == (topic_id, 3)
            row = await fetch(reading, "t")
            assert values_in(row) == [b"a", b"b"]
            assert reader.log_dir.logs["t", 0].config.is_compacted
        await produce(wire, "t", batch(b"c"))
    before = state_of(tmp_path)
    async with Broker(properties, read_only=True) as reader, Wire("127.0.0.1", reader.port) as reading:
        row = await fetch(reading, "t")
        assert values_in(row) == [b"a", b"b", b"c"]
    assert state_of(tmp_path) == before


async def test_a_missing_directory_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await Broker({"log.dirs": str(tmp_path / "nowhere")}, read_only=True).start()
    assert names_in(tmp_path) == []
