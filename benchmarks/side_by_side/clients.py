"""Our client, aiokafka and kafka-python: the same records to and from both brokers, each run in a process of its own.

Producers send without waiting for single records, acks=all, to four partitions; consumers are assigned one partition
and read it from its beginning. `client_work` is the program that runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product

from benchmarks.side_by_side import load
from benchmarks.side_by_side.contest import Contest, Side
from benchmarks.side_by_side.results import Row, Sample

CLIENTS = ("odradek", "aiokafka", "kafka-python")
RECORD_BYTES = (100, 1024)
CODECS = ("none", "lz4")
RECORDS = 200_000


def rows(contest: Contest, *, quick: bool) -> Iterator[Row]:
    cases = [(1024, "none")] if quick else list(product(RECORD_BYTES, CODECS))
    for record_bytes, codec in cases:
        for work in ("produce", "consume"):
            yield from _compared(contest, work, record_bytes, codec, RECORDS // 4 if quick else RECORDS)


def _compared(contest: Contest, work: str, record_bytes: int, codec: str, records: int) -> Iterator[Row]:
    topic = contest.new_topic(4 if work == "produce" else 1)
    if work == "consume":
        for side in contest.sides:
            _fill(side, topic, record_bytes, codec, records)
    for client in CLIENTS:

        def measure(side: Side, client: str = client) -> Sample:
            return run_client(side, client, work, topic, record_bytes, codec, records)

        yield contest.row("clients", f"{client}: {work} {record_bytes} B, {codec}", measure)
    contest.delete_topic(topic)


def _fill(side: Side, topic: str, record_bytes: int, codec: str, records: int) -> None:
    """Batches of some 16 KiB, as producers make them."""
    per_batch = 16_384 // record_bytes
    frame = load.produce_frame(topic, [0], load.batch(per_batch, record_bytes, codec))
    load.repeat(side.port, frame, -(-records // per_batch))


def run_client(side: Side, client: str, work: str, topic: str, record_bytes: int, codec: str, records: int) -> Sample:
    """One run of one client; its rate and the most memory that it had."""
    command = [sys.executable, "-m", "benchmarks.side_by_side.client_work", client, work, side.bootstrap, topic]
    done = subprocess.run(
        [*command, str(record_bytes), codec, str(records)], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{client} {work} on {side.name}: {done.stderr[-2000:]}")
    sample: Sample = json.loads(done.stdout.splitlines()[-1])
    return sample


PARTS = {"all": rows}
