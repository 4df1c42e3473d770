"""`perf`: its counts and its output; no test checks its rates."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.client import Consumer
from odradek.client.cli.perf.latencies import Latencies
from odradek.client.cli.perf.payloads import payloads_of_file, random_payloads
from tests.client.cli.commands import run, run_json
from tests.client.conftest import MakeTopic


@pytest.mark.parametrize("seed", range(20))
def test_percentiles_are_not_below_the_exact_ones_and_hardly_above(seed: int) -> None:
    source = random.Random(seed)
    durations = [source.lognormvariate(0, 3) + 0.001 for _ in range(source.randint(1, 3000))]
    latencies = Latencies()
    for duration in durations:
        latencies.add(duration)
    durations.sort()
    for share in (0.01, 0.5, 0.95, 0.999, 1.0):
        exact = durations[max(0, -(-int(share * len(durations) * 1000) // 1000) - 1)]
        assert exact * 0.9999 <= latencies.percentile(share) <= exact * 1.0110
    assert (latencies.count, latencies.max) == (len(durations), durations[-1])
    assert latencies.mean == pytest.approx(sum(durations) / len(durations))


def test_latencies_without_durations_are_zero() -> None:
    assert set(Latencies().summary().values()) == {0}


def test_payloads(tmp_path: Path) -> None:
    payloads = random_payloads(33)
    assert {len(next(payloads)) for _ in range(2000)} == {33}
    file = tmp_path / "payloads"
    file.write_bytes(b"one\ntwo\n\nthree\n")
    payloads = payloads_of_file(str(file), b"\n")
    assert {next(payloads) for _ in range(3)} == {b"one", b"two", b"three"}
    file.write_bytes(b"\n")
    with pytest.raises(ValueError, match="empty"):
        next(payloads_of_file(str(file), b"\n"))


async def test_all_records_are_sent_read_and_counted(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    sent = await run_json(
        "perf", "produce", *at, "--num-records", "3000", "--record-size", "50", "--warmup-records", "1000"
    )
    assert (sent["records"], sent["bytes"]) == (2000, 100_000)
    latency = sent["latency_ms"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p99_9"] <= latency["max"]
    async with Consumer(bootstrap) as consumer:
        assert sum((await consumer.end_offsets(await consumer.partitions_for(topic))).values()) == 3000

    read = await run_json("perf", "consume", *at, "--num-records", "3000", "--warmup-records", "500")
    assert (read["records"], read["bytes"]) == (2500, 125_000)

    of_both = ("--command-property", "linger.ms=1", "--command-property", "fetch.max.wait.ms=100")
    for arguments in (of_both, ("--throughput", "500")):
        measured = await run_json("perf", "e2e", *at, "--num-records", "60", "--warmup-records", "10", *arguments)
        assert (measured["records"], measured["bytes"]) == (50, 5000)
        assert measured["latency_ms"]["max"] > 0


async def test_lines_equal_those_of_kafkas_tools(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    at = ("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "300")
    out, _ = await run("perf", "produce", *at, "--throughput", "1500", "--reporting-interval", "60")
    *parts, whole = [line.decode() for line in out]
    assert parts
    for line in parts:
        assert line.endswith((" ms max latency.", " MB/sec)."))  # without an answer in the interval there is no latency
    assert whole.startswith("300 records sent, ")
    assert whole.endswith(" ms 99.9th.")
    out, err = await run(
        "perf", "consume", *at[:-1], "400", "--timeout-ms", "3000", "--reporting-interval", "60000", status=1
    )
    assert [line.split(b",")[0] for line in out] == [b"300 records read"]
    assert err == "error: 100 records are missing: none came within 3000 ms\n"


async def test_a_measurement_that_fails_is_an_error(bootstrap: str, topic: str, tmp_path: Path) -> None:
    at = ("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "5")
    _, err = await run("perf", "produce", *at, "--payload-file", str(tmp_path / "none"), status=1)
    assert "No such file" in err
    _, err = await run("perf", "produce", *at, "--record-size", "2000000", status=1)
    assert "MESSAGE_TOO_LARGE" in err
    _, err = await run("perf", "e2e", *at, "--record-size", "2000000", "--throughput", "10", status=1)
    assert "MESSAGE_TOO_LARGE" in err
    unknown = ("perf", "consume", "--bootstrap-server", bootstrap, "--topic", f"{topic}-typo", "--num-records", "1")
    _, err = await run(*unknown, "--timeout-ms", "200", status=1)
    assert f"error: there is no topic {topic}-typo; did you mean {topic}?\n" in err
    _, err = await run("perf", "brew", status=2)
    assert err == "python -m client perf: error: there is no action 'brew'; name one: produce, consume, e2e\n"
    _, err = await run("perf", "consume", *at, "--warmup-records", "5", status=2)
    assert "--warmup-records must be less than --num-records" in err
