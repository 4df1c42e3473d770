"""Workers of a local session import the installed PySpark and use Unix sockets in a private directory."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.spark import local_workers
from odradek.pipeline.spark.local_workers import socket_settings, worker_interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
DIRECTORY = "spark.python.unix.domain.socket.dir"
PRINT_ENVIRONMENT = "import os, sys; print(sys.executable, os.environ['PYTHONPATH'], sys.argv[1:], sep='\\n')"
ARCHIVES = ["/s/python/lib/pyspark.zip", "/s/python/lib/py4j-0.10.9.9-src.zip", "/s/jars/spark-core_2.13-4.3.0.jar"]


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A short path: that of a Unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="odradek-") as directory:
        yield f"{directory}/socket"


@pytest.mark.process
def test_the_daemon_of_workers_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    modules = tmp_path / "odradek" / "pipeline" / "spark"
    modules.mkdir(parents=True)
    (modules / "worker_daemon.py").write_text("import sys; print(sys.argv[1:])")
    command = [worker_interpreter(), "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    output = subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert output == "['pyspark.sql.worker.create_data_source']\n"


@pytest.mark.process
def test_the_process_of_a_stream_connects_before_it_imports_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, socket_path: str
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    streaming = tmp_path / "pyspark" / "sql" / "streaming"
    streaming.mkdir(parents=True)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "pyspark" / "__init__.py").write_text(f"open({str(gate)!r}).read()")  # blocks until the test writes
    (tmp_path / "pyspark" / "util.py").touch()
    (streaming / "python_streaming_source_runner.py").write_text(
        "from pyspark.util import local_connect_and_auth\n"
        "file, _ = local_connect_and_auth('path', None)\n"
        "file.write(__name__.encode())\n"
        "file.flush()\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    environment["PYTHON_WORKER_FACTORY_SOCK_PATH"] = socket_path
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(60)
        listener.bind(socket_path)
        listener.listen()
        command = [worker_interpreter(), "-m", "pyspark.sql.streaming.python_streaming_source_runner"]
        with subprocess.Popen(command, env=environment, cwd=tmp_path) as process:
            try:
                connection, _ = listener.accept()
            finally:
                gate.write_text("")
            with connection, connection.makefile("rb") as received:
                assert received.read() == b"__main__"
    assert process.returncode == 0


@pytest.mark.process
@pytest.mark.parametrize("archives", [ARCHIVES, [*ARCHIVES, *ARCHIVES], []])
def test_spark_archives_are_removed_from_the_import_path(monkeypatch: pytest.MonkeyPatch, archives: list[str]) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    output = subprocess.run(
        [worker_interpreter(), "-c", PRINT_ENVIRONMENT, "an argument", "*"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*archives, "/my project", "/other.zip"])},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert output == [sys.executable, "/my project:/other.zip", "['an argument', '*']"]


def test_spark_home_keeps_the_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert worker_interpreter() == sys.executable


def test_a_temporary_directory_without_execution_keeps_the_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert worker_interpreter() == sys.executable


def test_only_the_user_may_enter_the_socket_directory() -> None:
    assert stat.S_IMODE(Path(socket_settings()[DIRECTORY]).stat().st_mode) == stat.S_IRWXU


@pytest.mark.parametrize(("length", "fits"), [(60, True), (61, False)])
def test_a_socket_directory_with_a_long_path_keeps_tcp(
    monkeypatch: pytest.MonkeyPatch, length: int, fits: bool
) -> None:
    monkeypatch.setattr(local_workers, "_directory", lambda: Path("/" + "d" * (length - 1)))
    assert bool(socket_settings()) == fits


def test_a_system_without_unix_sockets_keeps_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    assert socket_settings() == {}


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(300)
def test_workers_of_a_local_session_import_the_installed_pyspark(spark: SparkSession) -> None:
    [imported] = spark.sparkContext.parallelize([None], 1).map(lambda _: sys.modules["pyspark"].__file__).collect()
    assert imported == sys.modules["pyspark"].__file__


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(300)
def test_the_session_leaves_pyspark_python_unchanged(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(300)
def test_workers_of_a_local_session_use_a_socket_of_its_directory(spark: SparkSession) -> None:
    [peers] = spark.sparkContext.parallelize([None], 1).map(lambda _: _own_sockets()).collect()
    assert any(path.startswith(spark.conf.get(DIRECTORY)) for path in peers)


def _own_sockets() -> list[str]:
    """The paths of the Unix sockets that this process has open."""
    own = {each.stat().st_ino for each in Path("/proc/self/fd").iterdir() if each.exists()}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return [line[7] for line in lines if len(line) > 7 and int(line[6]) in own]
