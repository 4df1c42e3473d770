"""A campaign by seed: what a producer reports of its records, compared with the log.

OUTCOME_SEEDS, a number, makes it longer: `OUTCOME_SEEDS=100 pytest tests/client/outcomes --log-cli-level INFO`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from odradek.client import ClientError, PossiblyPersistedError, Producer, RecordMetadata
from tests.client.outcomes.disturbed import PARTITIONS, Disturbed, disturbed

_LOG = logging.getLogger(__name__)

SEEDS = int(os.environ.get("OUTCOME_SEEDS", "2"))
RECORDS = 150

KINDS: dict[str, dict[str, Any]] = {
    "idempotent": {"acks": "all"},
    "all": {"acks": "all", "enable_idempotence": False},
    "one": {"acks": 1},
    "none": {"acks": 0},
}

Sent = dict[bytes, asyncio.Future[RecordMetadata]]


async def send_disturbed(place: Disturbed, kind: str) -> Sent:
    """Send records, and close the producer, with or without patience."""
    random = place.random
    sent: Sent = {}
    async with await place.start_producer(batch_size=300, **KINDS[kind]) as producer:
        for number in range(RECORDS):
            value = b"%s-%d" % (kind.encode(), number)
            try:
                sent[value] = await producer.send(kind, value, partition=random.randrange(PARTITIONS))
            except ClientError:
                continue  # it must not be in the log, as no future has it
            if random.random() < 0.1:
                await asyncio.sleep(random.uniform(0, 0.15))
        await producer.close(random.choice([0, 50, None]))
    return sent


def check(kind: str, sent: Sent, log: list[tuple[int, int, bytes]]) -> Counter[str]:
    """Compare the results with the log, and count them."""
    counts = Counter(value for _, _, value in log)
    places = {(partition, offset): value for partition, offset, value in log}
    assert counts.keys() <= sent.keys(), "a record is in the log that no future has"
    found: Counter[str] = Counter()
    acknowledged: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    for value, future in sent.items():
        error = future.exception()
        if error is None:
            at = future.result()
            found["acknowledged"] += 1
            if kind == "idempotent":
                assert counts[value] == 1, value
            elif kind != "none":
                assert counts[value] >= 1, value
            if at.offset >= 0:
                assert places[at.partition, at.offset] == value
                acknowledged[at.partition].append(at.offset)
        elif isinstance(error, PossiblyPersistedError):
            found["possibly persisted"] += 1
            assert isinstance(error.__cause__, ClientError)
            assert kind != "idempotent" or counts[value] <= 1, value
        else:
            found["not written"] += 1
            assert isinstance(error, ClientError)
            assert counts[value] == 0, (value, error)
    if kind == "idempotent":
        assert all(offsets == sorted(offsets) for offsets in acknowledged.values())
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_record_is_in_the_log_as_its_future_says(tmp_path: Path, seed: int) -> None:
    async with disturbed(tmp_path, seed) as place:
        async with Producer(place.bootstrap, acks=1) as producer:
            for kind in KINDS:
                await producer.send_and_wait(kind, b"first", partition=0)
        async with place.faults(0.05):
            sent = await asyncio.gather(*(send_disturbed(place, kind) for kind in KINDS))
        await place.proxy.drain()
        for kind, futures in zip(KINDS, sent, strict=True):
            log = [(one.partition, one.offset, one.value or b"") for one in await place.read(kind)]
            found = check(kind, futures, [each for each in log if each[2] != b"first"])
            _LOG.info("seed %d, %s: %s", seed, kind, dict(found))
        _LOG.info("seed %d: %s", seed, place.proxy.faults)
