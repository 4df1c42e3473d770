"""A hanging transaction: open in a partition, and not known there to its coordinator."""

from __future__ import annotations

from odradek.client import Admin, ConfigChange, ConfigResource
from tests.peers.transactional.raw import RawProducer
from tests.wire import Wire

_VERIFICATION = "transaction.partition.verification.enable"
_BROKER = ConfigResource.broker(1)


async def open_unknown_to_its_coordinator(bootstrap: str, topic: str) -> int:
    """Write an old record to partition 0 in a transaction of the id `topic`; return its producer id.

    The partition is not added to the transaction, which is only possible without verification.
    """
    host, _, port = bootstrap.rpartition(":")
    async with Admin(bootstrap) as admin, Wire(host, int(port)) as wire:
        producer = RawProducer(wire, topic, generation=1)
        await producer.init()
        await _verify(admin, "false")
        try:
            await producer.send(topic, b"hanging")
        finally:
            await _verify(admin, "true")
    return producer.producer_id


async def _verify(admin: Admin, value: str) -> None:
    """Switch the verification, and wait until it is in force."""
    change = ConfigChange(_VERIFICATION, value)
    (await admin.alter_configs({_BROKER: [change]})).value(_BROKER)
    while (await admin.describe_configs([_BROKER])).value(_BROKER)[_VERIFICATION].value != value:
        pass
