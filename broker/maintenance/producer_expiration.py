"""The removal of idempotent producers that have not written for producer.id.expiration.ms."""

from __future__ import annotations

from typing import Final

from odradek.broker.replication.partition import Partition

_REMOVED_AT_ONCE: Final = 5000  # producers; this takes a millisecond


async def remove_expired_producers(partition: Partition) -> None:
    """Remove the expired producers of a partition.

    A search through a million of them takes half a second, so it runs on a writer thread, in parts between appends.
    """
    log = partition.log
    producers = log.producers
    if not producers.is_crowded and not partition.appender.is_busy:
        log.remove_expired_producers()
        return
    appender = partition.appender
    for part in await appender.run_between_appends(producers.ids_in_parts, _REMOVED_AT_ONCE):
        await appender.run_between_appends(log.remove_expired_producers, part)
