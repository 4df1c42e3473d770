"""The examples in the documentation of the pipeline run as written, with other addresses and directories."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from odradek.client import Admin, NewTopic, Producer
from odradek.pipeline.jobs import run
from tests.peers import odradek
from tests.peers.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DOCS = Path(__file__).parents[2] / "docs"
COUNT = 40
FIRST = 1_740_960_000_000

TOPICS = [NewTopic(name) for name in ("orders", "trips", "trips-again", "revenue", "loud-orders")]
TOPICS.append(NewTopic("state", configs={"cleanup.policy": "compact"}))


def blocks(language: str) -> list[str]:
    text = "\n".join((DOCS / name).read_text() for name in ("pipeline.md", "broker-format.md", "klog-format.md"))
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def command_lines() -> list[list[str]]:
    """Return the arguments of every `odradek pipeline`, and the job's arguments of every spark-submit."""
    text = "\n".join(blocks("sh")).replace("\\\n", " ")
    return [
        shlex.split(found[1], comments=True)
        for found in re.finditer(
            r"^(?:odradek pipeline|spark-submit .* pipeline/__main__\.py) +(.*)$", text, re.MULTILINE
        )
    ]


def runs_here(line: list[str]) -> bool:
    elsewhere = {"--master", "/mnt/shared/log", "spark.jars.packages=io.delta:delta-spark_4.2_2.13:4.4.0"}
    return elsewhere.isdisjoint(line) and line[0] not in ("run", "package")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = odradek.prepare(tmp_path_factory.mktemp("documented")).start()
    asyncio.run(fill(server.bootstrap))
    yield server
    server.kill()


async def fill(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        (await admin.create_topics(TOPICS)).values_or_raise()
    async with Producer(bootstrap) as producer:
        for number in range(COUNT):
            value = json.dumps({"zone": f"Z{number % 3}", "hour": number, "cents": 100}).encode()
            for topic in ("orders", "trips", "revenue", "state"):
                await producer.send(topic, value, b"k%d" % (number % 10), timestamp=FIRST + number)


@pytest.mark.parametrize("line", command_lines(), ids=" ".join)
def test_every_command_line_is_valid(line: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module(f"odradek.pipeline.jobs.{line[0]}"), "run", lambda arguments: 0)
    assert run(line) == 0


def test_documented_jobs_succeed(
    spark: SparkSession, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in command_lines() if runs_here(line)]
    assert {line[0] for line in lines} == {"export", "replay", "verify", "compact", "restore", "stats"}
    outputs = [line[line.index("--output") + 1] for line in lines if "--output" in line]
    assert len(set(outputs)) == len(outputs)
    lines.sort(key=lambda line: "--bootstrap-server" not in line)
    for line in lines:
        if "--bootstrap-server" not in line and server.process.poll() is None:
            server.stop()  # klog reads a cleanly closed log to its end
        assert run([placed(part, server, tmp_path) for part in line]) == 0, (line, capsys.readouterr().err)
    trips, by_zone = (spark.read.parquet(str(tmp_path / "data" / name)) for name in ("trips", "trips-by-zone"))
    assert trips.count() == by_zone.count() == COUNT
    assert sorted(row.zone for row in by_zone.select("zone").distinct().collect()) == ["Z0", "Z1", "Z2"]


@pytest.mark.parametrize("block", blocks("python"))
def test_documented_python_runs(spark: SparkSession, server: Server, tmp_path: Path, block: str) -> None:
    if server.process.poll() is not None:
        server.start()
    names: dict[str, object] = {}
    try:
        exec(placed(block, server, tmp_path), names)
        for name in ("trips", "files", "orders"):
            if name in names:
                assert names[name].count() >= 0
    finally:
        for query in names.values():
            if isinstance(query, StreamingQuery):
                query.processAllAvailable()
                query.stop()


def placed(text: str, server: Server, directory: Path) -> str:
    """Replace the documented addresses and directories by those of this test."""
    places = {
        "localhost:9092": server.bootstrap,
        "/var/lib/odradek": str(server.log_dir),
        "/data/": f"{directory}/data/",
        "/tmp/": f"{directory}/",
        '"out"': f'"{directory}/out"',
        '"checkpoint"': f'"{directory}/checkpoint"',
    }
    return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], text)
