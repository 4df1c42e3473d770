"""Logs with numbered records over a scripted network, and functions to read them."""

from __future__ import annotations

from typing import Any

from odradek.client import (
    Consumer,
    ConsumerRecord,
)
from odradek.protocol.compression.codecs import Codec
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import batch


def values(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def fill(log: Log, count: int, per_batch: int = 10, codec: Codec = Codec.NONE) -> None:
    """Append records whose values and timestamps are their offsets."""
    for start in range(log.end_offset, log.end_offset + count, per_batch):
        log.add(
            batch([b"%d" % offset for offset in range(start, start + per_batch)], start, timestamp=start, codec=codec)
        )


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Read exactly this many records with poll."""
    records: list[ConsumerRecord] = []
    while len(records) < count:
        records += await consumer.poll(max_records=count - len(records))
    return records


def one_log(count: int = 0, **kwargs: Any) -> tuple[ScriptedNetwork, Log]:
    network = ScriptedNetwork(**kwargs)
    [log] = network.create("t")
    fill(log, count)
    return network, log
