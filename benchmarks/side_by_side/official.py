"""Common clients: Kafka's performance tools in Java, and librdkafka through confluent-kafka.

On two cores they are slower than either broker, so the broker's CPU is more significant than their rate. The start of a
Java run does not count; the broker's CPU counts from before the run to its end. Every round is a new process; the
brokers are warm. A Java producer warms up within its run, with as many records as are counted: before Java's compilers
are done, a record costs several times the processor time, ten times the broker's, and the rate would be that of the
compilers.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product

from benchmarks.side_by_side.clients import run_client
from benchmarks.side_by_side.contest import Contest, Side, with_cpu
from benchmarks.side_by_side.results import Row, Sample
from tests.peers import java

CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
END_TO_END_LATENCY = "org.apache.kafka.tools.EndToEndLatency"
_JVM = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")

_PRODUCED = re.compile(
    r"records sent, (?P<rate>[\d.]+) records/sec \((?P<mb>[\d.]+) MB/sec\).* (?P<p50>\d+) ms 50th,"
    r".* (?P<p99>\d+) ms 99th"
)
_END_TO_END = re.compile(r"Avg latency: (?P<mean_ms>[\d.]+) ms.*99th = (?P<p99_ms>\d+)", re.DOTALL)
RECORD_BYTES = (100, 1024)
BATCH_BYTES = (16_384, 262_144)
ACKS = ("1", "all")
CODECS = ("none", "lz4", "zstd")
ROUND_BYTES = 100_000_000
QUICK_ROUND_BYTES = 20_000_000
END_TO_END_RECORDS = 5000
QUICK_END_TO_END_RECORDS = 1000
GOALS = {"mb_per_s": 1.0, "cpu_s_per_gb": 0.7, "p50_ms": 1.0, "p99_ms": 1.0}
CONSUMER_GOALS = {"mb_per_s": 1.0, "cpu_s_per_gb": 0.4}


def _java_producers(record_bytes: int, contest: Contest, *, quick: bool) -> Iterator[Row]:
    cases = [(16_384, "all", "none")] if quick else product(BATCH_BYTES, ACKS, CODECS)
    for batch_bytes, acks, codec in cases:
        yield _java_producer(contest, record_bytes, batch_bytes, acks, codec, _round_bytes(quick))


def _librdkafka_producers(contest: Contest, *, quick: bool) -> Iterator[Row]:
    for record_bytes in RECORD_BYTES:
        yield _librdkafka_producer(contest, record_bytes, _round_bytes(quick))


def _all_consumers(contest: Contest, *, quick: bool) -> Iterator[Row]:
    for record_bytes in RECORD_BYTES:
        yield from _consumers(contest, record_bytes, _round_bytes(quick))


def _round_bytes(quick: bool) -> int:
    return QUICK_ROUND_BYTES if quick else ROUND_BYTES


def _java_producer(contest: Contest, record_bytes: int, batch_bytes: int, acks: str, codec: str, size: int) -> Row:
    topic = contest.new_topic(4)

    def measure(side: Side) -> Sample:
        return with_cpu_per_gb(
            side, 2 * size, lambda: produce(side, topic, record_bytes, batch_bytes, acks, codec, size, warm_up=size)
        )

    work = f"Java producer, {record_bytes} B, batch.size {batch_bytes // 1024} KiB, acks={acks}, {codec}"
    row = contest.row("official", work, measure, goals=GOALS, uncounted=False)
    contest.delete_topic(topic)
    return row


def produce(
    side: Side,
    topic: str,
    record_bytes: int,
    batch_bytes: int,
    acks: str,
    codec: str,
    size: int,
    *,
    warm_up: int = 0,
    linger_ms: int = 5,
) -> Sample:
    """Run Kafka's ProducerPerformance at full speed: `size` bytes of records, after `warm_up` that do not count."""
    properties = [
        f"bootstrap.servers={side.bootstrap}", f"acks={acks}", f"compression.type={codec}", f"batch.size={batch_bytes}",
        f"enable.idempotence={'true' if acks == 'all' else 'false'}", f"linger.ms={linger_ms}",
        "buffer.memory=67108864",
    ]  # fmt: skip
    printed = _java(
        java.PRODUCER_PERFORMANCE,
        *("--topic", topic, "--record-size", str(record_bytes), "--throughput", "-1"),
        *("--num-records", str((warm_up + size) // record_bytes), "--warmup-records", str(warm_up // record_bytes)),
        *("--command-property", *properties),
    )
    found = _PRODUCED.search(printed.splitlines()[-1])  # the line before it is for the warm-up and the rest together
    if found is None:
        raise RuntimeError(f"ProducerPerformance printed {printed[-500:]!r}")
    return {"mb_per_s": float(found["mb"]) * 1.048576, "p50_ms": float(found["p50"]), "p99_ms": float(found["p99"])}


def _consumers(contest: Contest, record_bytes: int, size: int) -> Iterator[Row]:
    """Run all consumers on the records of a Java producer, in the page cache."""
    topic = contest.new_topic(1)
    for side in contest.sides:
        # Long enough for full batches: otherwise a fast broker gets smaller ones, which cost its consumers more.
        produce(side, topic, record_bytes, 262_144, "1", "none", size, linger_ms=100)
    for work, consume in (CONSUMERS_OF_SMALL_RECORDS if record_bytes < 1024 else CONSUMERS).items():
        measure = partial(_consume, consume, topic=topic, record_bytes=record_bytes, size=size)
        yield contest.row("official", work.format(record_bytes), measure, goals=CONSUMER_GOALS, uncounted=False)
    contest.delete_topic(topic)


def _consume(consume: Callable[..., Sample], side: Side, *, topic: str, record_bytes: int, size: int) -> Sample:
    return with_cpu_per_gb(side, size, lambda: consume(side, topic, record_bytes, size))


def _java_consumer(side: Side, topic: str, record_bytes: int, size: int) -> Sample:
    printed = _java(
        CONSUMER_PERFORMANCE,
        *("--bootstrap-server", side.bootstrap, "--topic", topic, "--num-records", str(size // record_bytes)),
        *("--timeout", "60000"),
    )
    head, *lines = [line for line in printed.splitlines() if "," in line]
    values = dict(zip(head.split(", "), lines[-1].split(", "), strict=True))
    fetched_mb = float(values["data.consumed.in.MB"]) * 1.048576
    return {"mb_per_s": fetched_mb / (float(values["fetch.time.ms"]) / 1000)}


def _librdkafka_consumer(work: str, side: Side, topic: str, record_bytes: int, size: int) -> Sample:
    return _client(side, "confluent", work, topic, record_bytes, size)


CONSUMERS: dict[str, Callable[..., Sample]] = {
    "Java consumer, {} B": _java_consumer,
    "librdkafka consumer, {} B": partial(_librdkafka_consumer, "consume"),
}
CONSUMERS_OF_SMALL_RECORDS = CONSUMERS | {
    "librdkafka consumer, {} B, with its rests of a second": partial(_librdkafka_consumer, "consume-by-default"),
}


def _librdkafka_producer(contest: Contest, record_bytes: int, size: int) -> Row:
    topic = contest.new_topic(4)

    def measure(side: Side) -> Sample:
        return with_cpu_per_gb(side, size, lambda: _client(side, "confluent", "produce", topic, record_bytes, size))

    row = contest.row(
        "official", f"librdkafka producer, {record_bytes} B, acks=all", measure, goals=GOALS, uncounted=False
    )
    contest.delete_topic(topic)
    return row


def _client(side: Side, client: str, work: str, topic: str, record_bytes: int, size: int) -> Sample:
    sample = run_client(side, client, work, topic, record_bytes, "none", size // record_bytes)
    return {"mb_per_s": sample["records_per_s"] * record_bytes / 1e6}


def _end_to_end(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Run Kafka's EndToEndLatency: one record at a time is sent and read. Its quantiles are whole milliseconds."""
    records = QUICK_END_TO_END_RECORDS if quick else END_TO_END_RECORDS
    topic = contest.new_topic(1)

    def measure(side: Side) -> Sample:
        printed = _java(
            END_TO_END_LATENCY,
            *("--bootstrap-server", side.bootstrap, "--topic", topic),
            *("--num-records", str(records), "--producer-acks", "1", "--record-size", "100"),
        )
        found = _END_TO_END.search(printed)
        if found is None:
            raise RuntimeError(f"EndToEndLatency printed {printed[-500:]!r}")
        return {name: float(value) for name, value in found.groupdict().items()}

    yield contest.row(
        "official", "Java, end to end, acks=1", measure, goals={"mean_ms": 1.0, "p99_ms": 1.0}, uncounted=False
    )
    contest.delete_topic(topic)


def with_cpu_per_gb(side: Side, size: int, measure: Callable[[], Sample]) -> Sample:
    """Measure, and add the broker's CPU for each GB of the `size` bytes of records."""
    sample = with_cpu(side, measure)
    sample["cpu_s_per_gb"] = sample.pop("cpu_s") / size * 1e9
    return sample


def _java(main_class: str, *arguments: str) -> str:
    command = java.command(main_class, *arguments, options=_JVM)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{main_class} ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
    return done.stdout


PARTS: Mapping[str, Callable[..., Iterator[Row]]] = {
    "java-producer-100": partial(_java_producers, 100),
    "java-producer-1024": partial(_java_producers, 1024),
    "librdkafka-producer": _librdkafka_producers,
    "consumers": _all_consumers,
    "end-to-end": _end_to_end,
}
