"""`python -m pipeline`: help, usage errors and messages before Spark starts."""

from __future__ import annotations

import logging
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from odradek.pipeline.jobs import COMMANDS, TERMINATED, UsageError, run
from odradek.pipeline.jobs.job_session import is_not_from_py4j
from odradek.pipeline.jobs.partition_columns import partition_columns
from odradek.pipeline.jobs.results.summary import Summary


@pytest.mark.parametrize("command", COMMANDS)
def test_every_job_prints_help_without_spark(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run([command, "--help"])
    assert end.value.code == 0
    assert COMMANDS[command] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("export --topic t --output o", "one of the arguments --bootstrap-server --log-dir is required"),
        ("export --log-dir d --bootstrap-server b --topic t --output o", "not allowed with"),
        ("export --log-dir d --topic t --output o --format delta", "--format delta requires --bootstrap-server"),
        ("export --log-dir d --topic t --output o --partition-by hour", "--partition-by hour: use topic, date or"),
        ("restore --log-dir d --topic t --output o --as-of noon", "'noon' is not a time"),
        ("replay --input i --bootstrap-server b --topic t --rate 0", "0 is not above 0"),
        ("stats --bootstrap-server b", "--bootstrap-server requires --topic"),
        ("run bus --output o", "invalid choice: 'bus'"),
    ],
)
def test_usage_errors_exit_with_2(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(line.split())
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_a_missing_directory_is_reported_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "/nowhere/at/all"]) == 1
    assert "/nowhere/at/all" in capsys.readouterr().err


def test_stats_replace_a_report_only_with_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "windows.csv").touch()
    assert run(["stats", "--log-dir", "d", "--output", str(tmp_path)]) == 1
    assert "--overwrite replaces it" in capsys.readouterr().err


def test_the_example_replaces_a_directory_only_with_overwrite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "precious").touch()
    assert run(["run", "taxi", "--output", str(tmp_path)]) == 1
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert (tmp_path / "precious").exists()


def test_partition_by_is_parsed() -> None:
    assert partition_columns("topic,date") == {"topic": "topic", "date": "date"}
    assert partition_columns("none") == {}
    assert partition_columns("value.zone, value.car.kind") == {"zone": "$.zone", "car_kind": "$.car.kind"}
    wrong_ones = ("value.", "zone", "value.offset", "value.date", "value.a,value.a", "value.a-b", "topic,topic")
    of_other_case = (
        "value.Key",
        "value.VALUE",
        "value.Date",
        "topic,value.Topic",
        "value.a,value.A",
        "value.a.b,value.A_b",
    )
    for wrong in (*wrong_ones, *of_other_case):
        with pytest.raises(UsageError, match=r"use topic, date or value\.FIELD"):
            partition_columns(wrong)


def test_py4j_logs_nothing_after_ctrl_c() -> None:
    java_gateway = pytest.importorskip("py4j.java_gateway")
    of = {"levelno": logging.ERROR, "msg": "while sending command"}
    assert not is_not_from_py4j(logging.makeLogRecord(of | {"module": Path(java_gateway.__file__).stem}))
    assert is_not_from_py4j(logging.makeLogRecord(of | {"module": "partition_reader"}))


_TERMINATED_TWICE = """
import signal, sys
import odradek.pipeline.__main__ as command

def job(*_):
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGTERM)
        print("cleared up")
    return 130

command.run = job
sys.exit(command.main([]))
"""


@pytest.mark.process
def test_a_second_sigterm_does_not_interrupt_the_cleanup() -> None:
    ended = subprocess.run([sys.executable, "-c", _TERMINATED_TWICE], capture_output=True, check=False, text=True)
    assert (ended.returncode, ended.stdout) == (TERMINATED, "cleared up\n"), ended.stderr


def test_a_summary_contains_counts_and_rates(capsys: pytest.CaptureFixture[str]) -> None:
    Summary("export").print({"records": 1200, "bytes": 9, "files": 2}, as_json=False)
    printed = capsys.readouterr().err
    assert printed.startswith("export: 1,200 records, 9 bytes, 2 files, 0.0")
    assert "records per second" in printed


@pytest.mark.process
def test_the_package_can_be_imported_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "odradek.zip"
    assert run(["package", str(archive)]) == 0
    assert run(["package", str(archive)]) == 1
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert "odradek/pipeline/jobs/export.py" in zipfile.ZipFile(archive).namelist()
    program = "import odradek.pipeline.jobs.verify, odradek.client, sys; print(odradek.pipeline.jobs.verify.__file__)"
    environment = {"PYTHONPATH": str(archive)}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert str(archive) in printed.decode()


_WITHOUT_PYSPARK = """
import sys
from odradek.pipeline.jobs import COMMANDS, run

lines = [["--help"], []]
lines += [[command, flag] for command in COMMANDS for flag in ("--help", "--no")]
for line in lines:
    try:
        run(line)
    except SystemExit as end:
        assert end.code == (0 if "--help" in line else 2), line
print({"pyspark", "pyarrow", "numpy", "asyncio"} & set(sys.modules))
"""


@pytest.mark.process
def test_help_and_usage_errors_do_not_import_pyspark() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PYSPARK], capture_output=True, check=True, text=True
    ).stdout
    assert printed.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    "line",
    [
        "export --bootstrap-server 127.0.0.1:1 --topic t --output o",
        "replay --input i --bootstrap-server 127.0.0.1:1 --topic t",
        "compact --log-dir d --topic t --output o",
        "restore --log-dir d --topic t --output o",
        "stats --log-dir d",
        f"verify {Path(__file__).parents[2] / 'storage' / 'golden_dirs'}",
        "run taxi --output o",
    ],
)
def test_a_missing_requirement_is_reported_with_what_to_install(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(line.split()) == 1
    assert (
        "Spark needs Java 17 or newer, and none was found: install openjdk-17-jre-headless" in capsys.readouterr().err
    )
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert run(line.split()) == 1
    assert "the pipeline needs pyspark: pip install 'odradek[pipeline]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_matplotlib_is_reported_before_the_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["stats", "--log-dir", str(tmp_path), "--output", str(tmp_path / "o")]) == 1
    assert "the pipeline needs matplotlib: pip install 'odradek[pipeline]'" in capsys.readouterr().err
