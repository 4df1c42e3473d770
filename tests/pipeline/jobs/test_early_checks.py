"""A wrong option, address, topic or directory is one line on standard error, before Spark starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic
from odradek.pipeline.jobs import run


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    async def create_topic() -> None:
        async with Admin(running.bootstrap) as admin:
            (await admin.create_topics([NewTopic("known")])).values_or_raise()

    log_dir = tmp_path_factory.mktemp("early") / "log"
    with ThreadedBroker({"log.dirs": str(log_dir), "auto.create.topics.enable": "false"}) as running:
        asyncio.run(create_topic())
        yield running


@pytest.fixture(autouse=True)
def java_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that exists but cannot start Spark."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


FROM = {
    "export": "export --bootstrap-server {} --output o --topic {}",
    "compact": "compact --bootstrap-server {} --output o --topic {}",
    "restore": "restore --bootstrap-server {} --output o --topic {}",
    "stats": "stats --bootstrap-server {} --topic {}",
    "replay": "replay --input i --bootstrap-server {} --topic {}",
    "replay --append": "replay --append --input i --bootstrap-server {} --topic {}",
    "export by the connector": "export --connector kafka --bootstrap-server {} --output o --topic {}",
}


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command line; return its exit status and the only line that it prints."""
    status = run(line.split())
    (error,) = capsys.readouterr().err.splitlines()
    return status, error


@pytest.mark.parametrize("job", FROM)
def test_a_topic_that_does_not_exist(job: str, broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(FROM[job].format(broker.bootstrap, "knwon"), capsys) == (
        1,
        "error: there is no topic knwon; did you mean known?",
    )


@pytest.mark.parametrize("job", ["export", "replay"])
def test_an_address_without_a_broker(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, error = printed(FROM[job].format("127.0.0.1:1", "known"), capsys)
    assert status == 1
    assert "127.0.0.1:1: connection refused. Check the bootstrap servers" in error


@pytest.mark.parametrize(
    ("job", "option", "message"),
    [
        ("export", "kafka.isolation.level=none", "kafka.isolation.level is 'none': choose one of read_uncommitted, r"),
        ("export", "endingOffsets=latest", "endingoffsets applies to batches only: a stream has no end"),
        ("compact", "startingOffsets=latest", "a batch has nothing to read if startingOffsets is latest"),
        ("stats", "minPartition=3", "option 'minpartition' is not supported by format(\"broker\")"),
        ("replay", "kafka.compression.type=lzma", "kafka.compression.type is 'lzma': choose one of none, gzip"),
    ],
)
def test_a_wrong_option(
    job: str, option: str, message: str, broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    status, error = printed(f"{FROM[job].format(broker.bootstrap, 'known')} --option {option}", capsys)
    assert status == 2
    assert error.startswith(f"error: {message}")


@pytest.mark.parametrize("job", ["export --output o", "compact --output o", "restore --output o", "stats"])
def test_a_log_directory_without_the_topic(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_dir = tmp_path / "log"
    (log_dir / "known-0").mkdir(parents=True)
    (log_dir / "known-0" / "00000000000000000000.log").touch()
    assert printed(f"{job} --log-dir {log_dir} --topic known,other", capsys) == (
        1,
        f"error: {log_dir} does not contain other",
    )
    assert printed(f"{job} --log-dir {log_dir} --topic knwon", capsys) == (
        1,
        f"error: {log_dir} does not contain knwon; did you mean known?",
    )
    status, error = printed(f"{job} --log-dir {tmp_path}/none --topic known", capsys)
    assert status == 1
    assert f"{tmp_path}/none" in error


def test_a_wrong_option_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"export --log-dir {tmp_path} --topic known --output o --option mode=LENIENT"
    assert printed(line, capsys) == (
        2,
        "error: mode is 'LENIENT': choose one of FAILFAST, PERMISSIVE, DROPMALFORMED",
    )


def test_stats_of_a_log_directory_has_no_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"stats --log-dir {tmp_path} --option isolation.level=read_committed --option mode=LENIENT"
    message = "stats has no options for a log directory, because it reads batch headers only"
    assert printed(line, capsys) == (2, f"error: isolation.level, mode: {message}")
