"""Every flag of a job with every other: accepted together, or refused before Spark starts; none is silently ignored.

`REFUSED` has the flags that a source does not accept, `PAIRS` the pairs that exclude each other, and those of which one
makes the other acceptable. A flag that `FLAGS` lacks is a failure, so that a new one gets its row.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shlex
from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn

import pytest

pytest.importorskip("pyspark")

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic
from odradek.pipeline.jobs import job_session, run

OPTIONS = {
    f"--option {name}": f"--option {name}={value}"
    for name, value in {
        "startingOffsets": "earliest",
        "startingTimestamp": "1",
        "endingOffsets": "latest",
        "endingTimestamp": "9",
        "isolation.level": "read_committed",
        "kafka.isolation.level": "read_uncommitted",
        "minPartitions": "4",
        "includeHeaders": "false",
        "failOnDataLoss": "false",
        "maxOffsetsPerTrigger": "5",
        "mode": "PERMISSIVE",
        "subscribe": "t",
        "path": "p",
    }.items()
}
SINK_OPTIONS = {
    "--option topic": "--option topic=t",
    "--option kafka.acks": "--option kafka.acks=all",
    "--option kafka.linger.ms": "--option kafka.linger.ms=5",
}
COMMON = {
    "--connector": "--connector kafka",
    "--command-config": "--command-config {directory}/client.properties",
    "--master": "--master local[1]",
    "--conf": "--conf spark.a=b",
    "--json": "--json",
}
FLAGS = {
    "export": {
        **COMMON,
        **OPTIONS,
        "--overwrite": "--overwrite",
        "--partition-by": "--partition-by topic",
        "--format": "--format delta",
        "--on-data-loss": "--on-data-loss continue",
    },
    "compact": {
        **COMMON,
        **OPTIONS,
        "--overwrite": "--overwrite",
        "--whole-log": "--whole-log",
        "--drop-tombstones": "--drop-tombstones",
    },
    "restore": {
        **COMMON,
        **OPTIONS,
        "--overwrite": "--overwrite",
        "--as-of": "--as-of 5",
        "--value-schema": "--value-schema 'a STRING'",
        "--key-as": "--key-as binary",
        "--format": "--format delta",
    },
    "stats": {
        **COMMON,
        **OPTIONS,
        "--window": "--window 1h",
        "--output": "--output {directory}/report",
        "--overwrite": "--overwrite",
    },
    "replay": {
        **COMMON,
        **SINK_OPTIONS,
        "--from-topic": "--from-topic t",
        "--rate": "--rate 5",
        "--keep-partitions": "--keep-partitions",
        "--append": "--append",
    },
}
LINES = {
    ("export", "brokers"): "export --bootstrap-server {bootstrap} --topic t --output {directory}/o",
    ("export", "files"): "export --log-dir {log_dir} --topic t --output {directory}/o",
    ("compact", "brokers"): "compact --bootstrap-server {bootstrap} --topic t --output {directory}/o",
    ("compact", "files"): "compact --log-dir {log_dir} --topic t --output {directory}/o",
    ("restore", "brokers"): "restore --bootstrap-server {bootstrap} --topic t --output {directory}/o",
    ("restore", "files"): "restore --log-dir {log_dir} --topic t --output {directory}/o",
    ("stats", "brokers"): "stats --bootstrap-server {bootstrap} --topic t",
    ("stats", "files"): "stats --log-dir {log_dir} --topic t",
    ("replay", "brokers"): "replay --bootstrap-server {bootstrap} --topic t --input {directory}/i",
}
_A_FLAG = {"--option subscribe": "use --topic", "--option path": "use --log-dir"}
_OF_BROKERS = {"--connector": "requires --bootstrap-server", "--command-config": "requires --bootstrap-server"}
_NOT_OF_BROKERS = {"--option mode": "is not supported by format"}
_NOT_OF_FILES = {"--option maxOffsetsPerTrigger": "is not supported by format"}
_STARTS = {"--option startingOffsets": "sets it itself", "--option startingTimestamp": "sets it itself"}
_ENDS = {"--option endingOffsets": "sets it itself", "--option endingTimestamp": "sets it itself"}
_ISOLATION = {"--option isolation.level": "sets it itself", "--option kafka.isolation.level": "sets it itself"}
_BEFORE_OUTPUT = {"--overwrite": "requires --output"}
REFUSED = {
    ("export", "brokers"): {
        **_A_FLAG,
        **_NOT_OF_BROKERS,
        "--option failOnDataLoss": "sets it itself",
        "--option endingOffsets": "applies to batches only",
        "--option endingTimestamp": "applies to batches only",
    },
    ("export", "files"): {
        **_A_FLAG,
        **_OF_BROKERS,
        **_NOT_OF_FILES,
        **_STARTS,
        **_ENDS,
        "--option failOnDataLoss": "sets it itself",
        "--format": "requires --bootstrap-server",
    },
    ("compact", "brokers"): {**_A_FLAG, **_NOT_OF_BROKERS, **_ISOLATION, "--whole-log": "requires --log-dir"},
    ("compact", "files"): {**_A_FLAG, **_OF_BROKERS, **_NOT_OF_FILES, **_ISOLATION, **_ENDS},
    ("restore", "brokers"): {**_A_FLAG, **_NOT_OF_BROKERS, **_ISOLATION},
    ("restore", "files"): {**_A_FLAG, **_OF_BROKERS, **_NOT_OF_FILES, **_ISOLATION},
    ("stats", "brokers"): {
        **_A_FLAG,
        **_NOT_OF_BROKERS,
        **_BEFORE_OUTPUT,
        "--option includeHeaders": "sets it itself",
    },
    ("stats", "files"): {
        **_OF_BROKERS,
        **_BEFORE_OUTPUT,
        **dict.fromkeys(OPTIONS, "stats has no options for a log directory"),
    },
    ("replay", "brokers"): {"--option topic": "use --topic"},
}
_TWO_LEVELS = {("--option isolation.level", "--option kafka.isolation.level"): "give one of them"}
_FROM_OUTPUT = {("--output", "--overwrite"): None}
"""None: accepted together."""
_BY_JAVA = {("--connector", "--option mode"): None}
"""Options of Spark's connector are not checked: it has others than ours, and ignores those it lacks."""
PAIRS: dict[tuple[str, str], dict[tuple[str, ...], str | None]] = {
    ("export", "brokers"): {
        **_TWO_LEVELS,
        **_BY_JAVA,
        ("--connector", "--option endingOffsets"): None,
        ("--connector", "--option endingTimestamp"): None,
    },
    ("compact", "brokers"): _BY_JAVA,
    ("restore", "brokers"): _BY_JAVA,
    ("export", "files"): _TWO_LEVELS,
    ("stats", "brokers"): _TWO_LEVELS | _FROM_OUTPUT | _BY_JAVA,
    ("stats", "files"): _FROM_OUTPUT,
    ("compact", "files"): {
        ("--option endingOffsets", "--whole-log"): None,
        ("--option endingTimestamp", "--whole-log"): None,
    },
}
_SET_BY_THE_LINE = {"-h", "--help", "--bootstrap-server", "--log-dir", "--topic", "--topic-pattern", "--input"}


class AcceptedError(Exception):
    """Raised where Spark would start."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands for the names in the lines."""

    async def create_topic() -> None:
        async with Admin(running.bootstrap) as admin:
            (await admin.create_topics([NewTopic("t")])).values_or_raise()

    directory = tmp_path_factory.mktemp("pairs")
    (directory / "client.properties").write_text("client.id=pairs\n")
    with ThreadedBroker({"log.dirs": str(directory / "log")}) as running:
        asyncio.run(create_topic())
        yield {"bootstrap": running.bootstrap, "log_dir": str(directory / "log"), "directory": str(directory)}


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(*_: object) -> NoReturn:
        raise AcceptedError

    monkeypatch.setattr(job_session, "spark_session_for", accept)


def refusal(line: str, capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return the error with which a line is refused, None if it is accepted."""
    try:
        status: object = run(shlex.split(line))
    except AcceptedError:
        return None
    except SystemExit as end:
        status = end.code
    error = capsys.readouterr().err.splitlines()[-1]
    assert status == 2, f"{line}: {error}"
    return error


@pytest.mark.parametrize(("job", "source"), LINES)
def test_each_pair_of_flags(job: str, source: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    line, flags = LINES[job, source].format(**places), FLAGS[job]
    refused, pairs = REFUSED[job, source], PAIRS.get((job, source), {})
    wrong = []
    for one, other in itertools.combinations_with_replacement(flags, 2):
        given = (one,) if one == other else tuple(sorted((one, other)))
        error = refusal(" ".join([line, *(flags[each].format(**places) for each in given)]), capsys)
        messages = [refused[each] for each in given if each in refused]
        if given in pairs:
            messages = [pairs[given]]
        if not any(error is None if each is None else each in (error or "") for each in messages or [None]):
            wrong.append(f"{' '.join(given)}: {error}, expected {messages or 'that it is accepted'}")
    assert wrong == []


@pytest.mark.parametrize("job", FLAGS)
def test_each_flag_has_its_row(job: str) -> None:
    parser = argparse.ArgumentParser()
    import_module(f"odradek.pipeline.jobs.{job}").add_arguments(parser)
    known = {flag for action in parser._actions for flag in action.option_strings}  # noqa: SLF001

    tested = {name.split()[0] for name in FLAGS[job]}
    required = {"--output"} - tested
    assert known == tested | (_SET_BY_THE_LINE & known) | (required & known)


def test_an_option_that_is_given_twice(places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    line = f"{LINES['restore', 'brokers']} --option minPartitions=2 --option minpartitions=3".format(**places)
    assert refusal(line, capsys) == "error: --option minpartitions is given twice"
