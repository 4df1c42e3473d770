"""Our client, aiokafka and kafka-python: the same records to and from both brokers, each run in a separate process.

Producers send without waiting for single records, acks=all, idempotent, to four partitions; consumers are assigned one
partition and read it from its beginning. `client_work` is the program. The clients take turns within a round, so that a
ratio of two clients is of the same minute.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from benchmarks.side_by_side import load
from benchmarks.side_by_side.contest import Contest, Side
from benchmarks.side_by_side.results import Row, Sample
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder

CLIENTS = ("odradek", "aiokafka", "kafka-python")
ASYNCHRONOUS = ("odradek", "aiokafka")
CASES = list(product((100, 1024), ("none", "lz4")))
QUICK_CASES = [(1024, "none")]
RECORDS = 200_000
PACED_RECORDS = 1000


def produce_rows(contest: Contest, *, quick: bool) -> Iterator[Row]:
    for record_bytes, codec in QUICK_CASES if quick else CASES:
        yield from _compared(contest, "produce", record_bytes, codec, RECORDS // 4 if quick else RECORDS)
    if not quick:
        yield from _compared(contest, "produce-keyed", 100, "none", RECORDS)


def consume_rows(contest: Contest, *, quick: bool) -> Iterator[Row]:
    for record_bytes, codec in QUICK_CASES if quick else CASES:
        for work in ("consume", "iterate"):
            yield from _compared(contest, work, record_bytes, codec, RECORDS // 4 if quick else RECORDS)
    if not quick:
        yield from _compared(contest, "consume-varied", 100, "none", RECORDS)


def latency_rows(contest: Contest, *, quick: bool) -> Iterator[Row]:
    for work in ("latency", "end-to-end"):
        yield from _compared(contest, work, 100, "none", PACED_RECORDS // 4 if quick else PACED_RECORDS, ASYNCHRONOUS)


PARTS = {"produce": produce_rows, "consume": consume_rows, "latency": latency_rows}


def _compared(
    contest: Contest, work: str, record_bytes: int, codec: str, records: int, clients: Sequence[str] = CLIENTS
) -> Iterator[Row]:
    topic = contest.new_topic(4 if work.startswith("produce") else 1)
    if work.startswith(("consume", "iterate")):
        for side in contest.sides:
            _fill(side, topic, record_bytes, codec, records, varied=work == "consume-varied")

    def of(client: str) -> tuple[str, Callable[[Side], Sample]]:
        name = f"{client}: {work} {record_bytes} B, {codec}"
        return name, lambda side: run_client(side, client, work, topic, record_bytes, codec, records)

    yield from contest.rows("clients", dict(map(of, clients)), uncounted=False)  # each run is a new process anyway
    contest.delete_topic(topic)


def _fill(side: Side, topic: str, record_bytes: int, codec: str, records: int, *, varied: bool) -> None:
    """Fill a topic with batches of about 16 KiB; with `varied`, values have 50 % to 150 % of the length."""
    per_batch = 16_384 // record_bytes
    batch = load.batch(per_batch, record_bytes, codec)
    if varied:
        chance, builder = random.Random(1), BatchBuilder(Codec[codec.upper()])
        for _ in range(per_batch):
            builder.append(0, None, chance.randbytes(chance.randrange(record_bytes // 2, record_bytes * 3 // 2)))
        batch = bytes(builder.build())
    frame = load.produce_frame(topic, [0], batch)
    load.repeat(side.port, frame, -(-records // per_batch))


def run_client(side: Side, client: str, work: str, topic: str, record_bytes: int, codec: str, records: int) -> Sample:
    """Run one client; return its rate, its CPU and its peak memory, or its latency."""
    command = [sys.executable, "-m", "benchmarks.side_by_side.client_work", client, work, side.bootstrap, topic]
    done = subprocess.run(
        [*command, str(record_bytes), codec, str(records)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{client} {work} on {side.name}: {done.stderr[-2000:]}")
    sample: Sample = json.loads(done.stdout.splitlines()[-1])
    return sample
