"""The command lines of jobs, on a broker with records and on its log directory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.broker.storage.log_config import LogConfig
from odradek.client import Producer
from odradek.pipeline.jobs import run
from tests.peers.server import Server
from tests.pipeline.tables import assert_same, table
from tests.storage.logs import TOPIC_ID, append, open_log_dir

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("kind", ["odradek"])]

HOUR = 3_600_000
FIRST = 1_740_960_000_000


def produce(bootstrap: str, topic: str, numbers: range) -> None:
    """Send records with JSON values, ten keys, and timestamps an hour apart."""

    async def send_all() -> None:
        async with Producer(bootstrap, compression_type="lz4") as producer:
            for number in numbers:
                value = json.dumps({"number": number, "zone": f"Z{number % 3}"}).encode()
                await producer.send(topic, value, b"k%d" % (number % 10), timestamp=FIRST + number * HOUR)

    asyncio.run(send_all())


def numbers_in(spark: SparkSession, directory: Path | str) -> list[int]:
    rows = spark.read.parquet(str(directory)).select("value").collect()
    return sorted(json.loads(row.value)["number"] for row in rows)


def test_export_adds_new_records_and_replay_keeps_the_order_of_keys(
    spark: SparkSession, bootstrap: str, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, again = make_topic(2, retention_ms=-1), make_topic(3)
    output = tmp_path / "out"
    export = ["export", "--bootstrap-server", bootstrap, "--topic", topic, "--output", str(output)]
    export += ["--partition-by", "date,value.zone"]
    for numbers in (range(50), range(50, 80), range(80, 80)):
        produce(bootstrap, topic, numbers)
        assert run(export) == 0
        assert numbers_in(spark, output) == list(range(numbers.stop))
    assert (output / "date=2025-03-04" / "zone=Z1").is_dir()
    assert run([*export[:-1], "topic"]) == 1

    replay = ["replay", "--input", str(output), "--bootstrap-server", bootstrap, "--topic", again, "--rate", "100"]
    assert run(replay) == 0
    assert run(replay) == 1  # the topic has records now
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": again}
    sent = spark.read.format("broker").options(**options).load().orderBy("partition", "offset").collect()
    assert len(sent) == 80
    for key in range(10):
        numbers_of_key = [json.loads(row.value)["number"] for row in sent if row.key == b"k%d" % key]
        assert numbers_of_key == list(range(key, 80, 10))
    times = [row.timestamp for row in sent]
    assert max(times) - min(times) > timedelta(milliseconds=500)  # delayed one by one; together 800 ms


def test_jobs_also_use_the_connector_of_spark(
    spark: SparkSession, bootstrap: str, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, again = make_topic(2, retention_ms=-1), make_topic(2)
    produce(bootstrap, topic, range(30))
    connector = ["--bootstrap-server", bootstrap, "--connector", "kafka"]
    output = str(tmp_path / "out")
    assert run(["export", *connector, "--topic", topic, "--output", output]) == 0
    assert numbers_in(spark, output) == list(range(30))
    assert run(["replay", *connector, "--topic", again, "--input", output, "--keep-partitions", "--rate", "300"]) == 0
    sent, came = (
        table(spark, "kafka", bootstrap, subscribe=name).drop("topic", "timestamp") for name in (topic, again)
    )
    assert assert_same(came, sent) == 30


def test_a_format_without_its_package_is_reported(
    spark: SparkSession,
    bootstrap: str,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["--bootstrap-server", bootstrap, "--topic", make_topic(1), "--output", str(tmp_path / "out")]
    for job in ("export", "restore"):
        for name, package in (("delta", "delta-spark_4.2_2.13"), ("iceberg", "iceberg-spark-runtime-4.1_2.13")):
            assert run([job, *line, "--format", name]) == 1
            printed = capsys.readouterr().err
            assert f"this session has no package for {name}" in printed
            assert package in printed
    assert not (tmp_path / "out").exists()


def test_export_of_a_log_directory_adds_new_records(
    spark: SparkSession, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = open_log_dir(tmp_path / "log")
    log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    log_dir.close()
    export = ["export", "--log-dir", str(tmp_path / "log"), "--topic", "t", "--output", str(tmp_path / "out"), "--json"]
    for numbers in (range(50), range(50, 80), range(80, 80)):
        log_dir = open_log_dir(tmp_path / "log")
        log = log_dir.logs["t", 0]
        log.advance_high_watermark(log.log_end_offset)
        for number in numbers:
            append(log, b'{"number": %d}' % number)
        log.advance_high_watermark(log.log_end_offset)
        log_dir.close()
        assert run(export) == 0
        assert json.loads(capsys.readouterr().out)["records"] == len(numbers)
        assert numbers_in(spark, tmp_path / "out") == list(range(numbers.stop))


def test_restore_writes_a_typed_table_of_the_state_at_a_time(
    spark: SparkSession,
    bootstrap: str,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic(2, cleanup_policy="compact")
    produce(bootstrap, topic, range(25))
    restore = ["restore", "--bootstrap-server", bootstrap, "--topic", topic, "--output", str(tmp_path / "state")]
    restore += ["--value-schema", "number BIGINT, zone STRING", "--json"]
    for as_of, last in ((["--as-of", "2025-03-03T14:59:59Z"], 14), ([], 24)):
        assert run([*restore, *as_of, "--overwrite"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert (summary["records"], summary["keys"]) == (25, 10)
        table = spark.read.parquet(str(tmp_path / "state"))
        assert [field.simpleString() for field in table.schema][:3] == ["key:string", "number:bigint", "zone:string"]
        latest = {number % 10: number for number in range(last + 1)}
        found = {(row.key, row.number, row.zone) for row in table.collect()}
        assert found == {(f"k{key}", number, f"Z{number % 3}") for key, number in latest.items()}
    for job in (restore, ["compact", "--bootstrap-server", bootstrap, "--topic", topic, "--output", restore[6]]):
        assert run(job) == 1
        assert "--overwrite replaces it" in capsys.readouterr().err


def test_stats_of_files_and_of_brokers_agree(
    spark: SparkSession,
    bootstrap: str,
    servers: Callable[[str], Server],
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic(1, retention_ms=-1)
    produce(bootstrap, topic, range(48))
    results = []
    for source in (["--log-dir", str(servers("odradek").log_dir)], ["--bootstrap-server", bootstrap]):
        output = tmp_path / source[0]
        assert run(["stats", *source, "--topic", topic, "--window", "7d", "--json", "--output", str(output)]) == 0
        results.append(json.loads(capsys.readouterr().out))
        assert (output / f"{topic}.png").stat().st_size > 10_000
    files, brokers = results
    assert [sum(row["records"] for row in each["windows"]) for each in results] == [48, 48]
    assert [row["codecs"] for row in files["windows"]] == [["lz4"]]
    assert files["windows"][0]["compression_ratio"] > 1
    assert brokers["keys"][0]["keys"] == files["keys"][0]["keys"] == 10


def test_verify_prints_json_and_fails_on_problems(
    spark: SparkSession, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").touch()
    assert run(["verify", str(tmp_path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["partitions"], found["problems"]) == (1, 1)
    assert found["found"] == [{"path": "t-0/partition.metadata", "problem": "is missing"}]


def test_an_error_of_spark_is_one_line(
    spark: SparkSession,
    bootstrap: str,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["replay", "--input", str(tmp_path / "none"), "--bootstrap-server", bootstrap, "--topic", make_topic(1)]
    assert run(line) == 1
    assert "PATH_NOT_FOUND" in capsys.readouterr().err.splitlines()[-1]
