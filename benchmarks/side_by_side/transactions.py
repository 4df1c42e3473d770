"""Transactions, with version 2 of the protocol on both brokers, and with version 1.

| part | what it measures | the load generator |
|---|---|---|
| `rate` | transactions of 1 and of 16 producers, one record or 100 records each | `transactions.c` |
| `visible` | from a commit to a parked read_committed consumer | `transactions.c` |
| `reads` | read_committed beside read_uncommitted, of the same log | `load.c` |
| `offset-fetch` | OffsetFetch with require_stable while transactions are open | `load.c` |
| `copy` | a copy job that commits every 100 ms | Java's clients, `CopyJob.java` |
| `ids` | 100,000 transactional ids: a restart, memory | |

A goal is a ratio to Apache Kafka. Kafka answers the end of a transaction before its markers are written, and the next
transaction of the producer waits for them, by a fixed pause of 20 ms or more; so one producer shows that pause, and 16
the work of the broker.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.side_by_side import life, load, transactional_load, usage
from benchmarks.side_by_side.contest import Contest, Side, sides, tell, with_cpu
from benchmarks.side_by_side.growth import at, beside, small_load, untouched_brokers
from benchmarks.side_by_side.results import Row, Sample
from benchmarks.side_by_side.transactional_load import VERSIONS, Work
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.peers import features, java
from tests.peers.availability import program

PRODUCERS = 16
COPIED_BYTES = 100_000_000
COPY_TRANSACTION_MS = 100
COPY_SECONDS = (6, 8)
"""Before the measurement, in which Java's compilers work, and of it."""
IDS = 100_000
OPEN_TRANSACTIONS = (100, 1000)
FILLED_TRANSACTIONS = 2000
FILL = (16, 1000)
"""Records and bytes of a value in each transaction of the log for `reads`."""

_GROUP = "transactions"
_PIPELINED = 50
_SENTINELS = 1000
"""Ids that must be listed before all partitions count as loaded: some of each of the 50 partitions."""
_LOAD_SECONDS = 300
_COPY_JOB = Path(__file__).with_name("CopyJob.java")
_JVM = ("-Xmx512M", "-server", "-XX:+UseG1GC")


def _set_version(contest: Contest, version: int) -> None:
    for side in contest.sides:
        features.set_level(side.server, features.TRANSACTION_VERSION, version)


def _both_versions(rows: Callable[[Contest, int, str], Iterator[Row]], contest: Contest) -> Iterator[Row]:
    """Yield the rows with version 2, then with version 1, which is named in the work."""
    try:
        for version in VERSIONS:
            _set_version(contest, version)
            yield from rows(contest, version, "" if version == VERSIONS[0] else f", version {version}")
    finally:
        _set_version(contest, VERSIONS[0])


# ------------------------------------------------------------------------------------------------------------ producers


def _rates(contest: Contest, *, quick: bool) -> Iterator[Row]:
    yield from _both_versions(partial(_rates_with, quick=quick), contest)


def _rates_with(contest: Contest, version: int, suffix: str, *, quick: bool) -> Iterator[Row]:
    def own_partition(count: int) -> Callable[[str], list[Work]]:
        return lambda topic: [Work(topic, [number], 1, 100, version) for number in range(count)]

    def shared_partitions(records: int) -> Callable[[str], list[Work]]:
        return lambda topic: [Work(topic, range(3), records, 1024, version) for _ in range(PRODUCERS)]

    large = {"transactions_per_s": 1.0, "cpu_us_a_transaction": 0.7}
    cases: list[tuple[str, int, Callable[[str], list[Work]], dict[str, float]]] = [
        ("1 producer, 1 record", 1, own_partition(1), {"transactions_per_s": 5.0}),
        (f"{PRODUCERS} producers, 1 record", PRODUCERS, own_partition(PRODUCERS), {"transactions_per_s": 1.5}),
        (f"{PRODUCERS} producers, 100 × 1 KiB over 3 partitions", 3, shared_partitions(34), large),
        (f"{PRODUCERS} producers, 100 × 1 KiB to each of 3 partitions", 3, shared_partitions(100), large),
    ]
    for name, partitions, works_on, goals in cases[:3] if quick else cases:
        topic = contest.new_topic(partitions)
        works = works_on(topic)
        yield contest.row(
            _GROUP, f"transactions, {name}{suffix}", partial(_rate, contest, works), goals=_goals(goals, version)
        )
        contest.delete_topic(topic)


def _goals(goals: Mapping[str, float], version: int) -> Mapping[str, float]:
    """Goals are for version 2."""
    return goals if version == VERSIONS[0] else {}


def _rate(contest: Contest, works: Sequence[Work], side: Side) -> Sample:
    sample = with_cpu(side, lambda: transactional_load.run(side.port, works, seconds=contest.seconds))
    sample["cpu_us_a_transaction"] = sample.pop("cpu_us")
    del sample["cpu_s"]
    return sample


def _visible(contest: Contest, *, quick: bool) -> Iterator[Row]:
    rounds = 100 if quick else 500
    yield from _both_versions(partial(_visible_with, rounds=rounds), contest)


def _visible_with(contest: Contest, version: int, suffix: str, *, rounds: int) -> Iterator[Row]:
    topic = contest.new_topic()
    work = Work(topic, [0], 1, 100, version)

    def measure(side: Side) -> Sample:
        sample = transactional_load.visible(side.port, work, rounds=rounds)
        del sample["requests"]
        return sample

    goals = _goals({"p50_us": 0.6, "p99_us": 0.6}, version)
    yield contest.row(_GROUP, f"from commit to a parked read_committed consumer{suffix}", measure, goals=goals)
    contest.delete_topic(topic)


# ------------------------------------------------------------------------------------------------------------ consumers


def _reads(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Read a log of many small transactions with both isolation levels, in turns within a round."""
    topic = contest.new_topic()
    work = Work(topic, [0], *FILL, VERSIONS[0])
    transactions = FILLED_TRANSACTIONS // (10 if quick else 1)
    for side in contest.sides:
        transactional_load.fill(side.port, work, transactions)
    step = FILL[0] + 1  # and the marker
    # Each has 1 MiB behind it. The first batch is alone in its segment: the marker behind it is years younger.
    offsets = range(step, (transactions - 70) * step, step)
    for name, size, connections in (("16 KiB, 4 connections", 16 << 10, 4), ("1 MiB", 1 << 20, 1)):
        frames = {
            committed: [load.fetch_frame(topic, [0], size, offset, read_committed=committed) for offset in offsets]
            for committed in (False, True)
        }
        measure = partial(_committed_beside_uncommitted, contest, frames, size, connections)
        yield contest.row(_GROUP, f"fetch {name}, read_committed", measure)
    contest.delete_topic(topic)


def _committed_beside_uncommitted(
    contest: Contest, frames: Mapping[bool, Sequence[bytes]], size: int, connections: int, side: Side
) -> Sample:
    found: dict[bool, Sample] = {}
    for committed, walk in frames.items():
        send = partial(
            load.run, side.port, walk,
            connections=connections, in_flight=1, seconds=contest.seconds, walk=True,
        )  # fmt: skip
        found[committed] = with_cpu(side, send)
    return {
        "mb_per_s": found[True]["rate"] * size / 1e6,
        "of_uncommitted": found[True]["rate"] / found[False]["rate"],
        "cpu_of_uncommitted": found[True]["cpu_us"] / found[False]["cpu_us"],
    }


def _offset_fetches(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Fetch the offsets of eight groups while other groups have offsets in more and more open transactions."""
    topic = contest.new_topic()
    frames = [_offset_fetch(f"worked-on-{number}", topic) for number in range(8)]
    with untouched_brokers(contest) as untouched:
        for twin in (contest, untouched):
            for side in twin.sides:
                with load.Asker(side.port) as asker:
                    asker.accepted(load.find_coordinator_frame("other"))
                    transactional_load.initialized(asker, "first")
        count = 0
        for size in OPEN_TRANSACTIONS[:1] if quick else OPEN_TRANSACTIONS:
            for side in contest.sides:
                _open(side, topic, range(count, size))
            count = size
            here, there = (partial(small_load, each, frames) for each in (contest, untouched))
            work = f"OffsetFetch, require_stable, 8×1, with {size:,} open transactions"
            yield contest.row(_GROUP, work, beside(at(untouched, there), here))
    contest.delete_topic(topic)


def _offset_fetch(group: str, topic: str) -> bytes:
    topics = [OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=True)
    return load.frame(request, 9)


def _open(side: Side, topic: str, numbers: range) -> None:
    """Open a transaction for each number, with an offset of a group of its own. They time out after a quarter."""
    topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, 1)])]
    with load.Asker(side.port) as asker:
        for number in numbers:
            producer = transactional_load.initialized(asker, f"open-{number}", timeout_ms=900_000)
            request = TxnOffsetCommitRequest(
                producer.transactional_id, f"open-{number}", producer.producer_id, producer.epoch, topics=topics
            )
            asker.accepted(load.frame(request, 5))


# ------------------------------------------------------------------------------------------------------------- copy job


def _copies(contest: Contest, *, quick: bool) -> Iterator[Row]:
    yield from _both_versions(partial(_copies_with, quick=quick), contest)


def _copies_with(contest: Contest, version: int, suffix: str, *, quick: bool) -> Iterator[Row]:
    source, target = contest.new_topic(), contest.new_topic(4)
    frame = load.produce_frame(source, [0], load.batch(16, 1024))
    for side in contest.sides:
        load.repeat(side.port, frame, COPIED_BYTES // (16 * 1024) // (5 if quick else 1))
    work = f"Java, copy job, 1 KiB, transactions of {COPY_TRANSACTION_MS} ms{suffix}"
    goals = _goals({"mb_per_s": 1.0}, version)
    yield contest.row(_GROUP, work, partial(_copy, source, target), goals=goals, uncounted=False)
    contest.delete_topic(source)
    contest.delete_topic(target)


def _copy(source: str, target: str, side: Side) -> Sample:
    program("javac", "default-jdk-headless")  # `java` needs its compiler to run a source file
    command = java.command(
        str(_COPY_JOB), side.bootstrap, source, target, str(COPY_TRANSACTION_MS), *map(str, COPY_SECONDS), options=_JVM
    )
    before = side.cpu_seconds()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"CopyJob ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
    copied_bytes, counted_bytes, seconds = map(float, done.stdout.splitlines()[-1].split())
    return {
        "mb_per_s": counted_bytes / 1e6 / seconds,
        "cpu_s_per_gb": (side.cpu_seconds() - before) / copied_bytes * 1e9,
    }


# ------------------------------------------------------------------------------------------------------------- many ids


def _many_ids(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Create transactional ids, restart after a clean stop, and wait until all are listed. The brokers are new ones."""
    count = IDS // (10 if quick else 1)
    whole = Row(_GROUP, f"start with {count:,} transactional ids, until loaded", goals={"seconds": 0.5})
    loading = Row(_GROUP, f"load {count:,} transactional ids, after the first Metadata")
    memory = Row(_GROUP, f"resident with {count:,} transactional ids", goals={"rss_mb": 0.3})
    for _ in range(1 if quick else max(1, contest.rounds // 2)):
        with TemporaryDirectory(prefix="transactional-ids-") as directory:
            for side in sides(Path(directory), contest.tree):
                life.start(side)
                sentinels = _initialize(side, count)
                side.server.stop(timeout=120)
                first = life.start(side)["seconds"]
                start = time.perf_counter()
                _await_listed(side, sentinels)
                taken = time.perf_counter() - start
                whole.samples.setdefault(side.name, []).append({"seconds": first + taken})
                loading.samples.setdefault(side.name, []).append({"seconds": taken})
                memory.samples.setdefault(side.name, []).append({"rss_mb": usage.resident_bytes(side.pid) / 1e6})
                side.server.kill()
    for row in (whole, loading, memory):
        tell(row)
        yield row


def _initialize(side: Side, count: int) -> set[int]:
    """Get a producer id for each transactional id; return some of them."""
    found: list[int] = []
    ids = [f"id-{number}" for number in range(count)]
    with load.Asker(side.port) as asker:
        transactional_load.initialized(asker, ids[0])
        for first in range(0, count, _PIPELINED):
            together = ids[first : first + _PIPELINED]
            frames = [load.frame(InitProducerIdRequest(each, 60_000), 4) for each in together]
            for transactional_id, answer in zip(together, asker.ask_together(frames), strict=True):
                if answer.error_code:  # its partition has no leader yet
                    answer = transactional_load.initialized(asker, transactional_id)
                found.append(answer.producer_id)
    return set(random.Random(1).sample(found, _SENTINELS))


def _await_listed(side: Side, sentinels: set[int]) -> None:
    """Wait until these producer ids are listed, and no partition is being loaded."""
    frame = load.frame(ListTransactionsRequest(producer_id_filters=sorted(sentinels)), 1)
    give_up_at = time.monotonic() + _LOAD_SECONDS
    with load.Asker(side.port) as asker:
        while time.monotonic() < give_up_at:
            _, answer = asker.ask(frame)
            if not answer.error_code and {each.producer_id for each in answer.transaction_states} == sentinels:
                return
            time.sleep(0.005)
    raise RuntimeError(f"{side.name} does not list its transactional ids")


PARTS: Mapping[str, Callable[..., Iterator[Row]]] = {
    "rate": _rates,
    "visible": _visible,
    "reads": _reads,
    "offset-fetch": _offset_fetches,
    "copy": _copies,
    "ids": _many_ids,
}
