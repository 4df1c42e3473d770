"""A worker whose socket Java has closed ends without a traceback."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from pyspark.serializers import UTF8Deserializer, read_int

pytestmark = pytest.mark.process


@pytest.fixture
def socket_directory() -> Iterator[str]:
    """A directory with a short name: the path of a Unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="odradek-") as directory:
        yield directory


@pytest.mark.parametrize("pending", [b"", b"\x00\x00\x00"])
def test_a_worker_whose_socket_is_closed_ends_quietly(socket_directory: str, pending: bytes) -> None:
    environment = os.environ | {
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": socket_directory,
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        "SPARK_REUSE_WORKER": "1",
    }
    command = [sys.executable, "-m", "odradek.pipeline.spark.worker_daemon", "pyspark.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as daemon:
        assert daemon.stdin
        assert daemon.stdout
        assert daemon.stderr
        path = UTF8Deserializer().loads(daemon.stdout)
        with socket.socket(socket.AF_UNIX) as java, java.makefile("rwb") as stream:
            java.connect(path)
            worker = os.pidfd_open(read_int(stream))
            stream.write(pending)
        ended = select.select([worker], [], [], 30)[0]
        os.close(worker)
        daemon.stdin.close()  # the daemon ends, too
        assert daemon.stderr.read() == b""
        assert ended
