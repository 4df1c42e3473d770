"""Java and the workers of a local session talk through Unix sockets that nobody else reaches."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.spark import worker_sockets
from odradek.pipeline.spark.worker_sockets import socket_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY = "spark.python.unix.domain.socket.dir"


def test_only_this_user_enters_the_directory_of_the_sockets() -> None:
    assert stat.S_IMODE(Path(socket_settings()[DIRECTORY]).stat().st_mode) == stat.S_IRWXU


@pytest.mark.parametrize(("length", "fits"), [(60, True), (61, False)])
def test_without_room_for_the_name_of_a_socket_there_is_none(
    monkeypatch: pytest.MonkeyPatch, length: int, fits: bool
) -> None:
    directory = Path("/" + "d" * (length - 1))
    monkeypatch.setattr(worker_sockets, "session_directory", lambda: directory)
    assert bool(socket_settings()) == fits


def test_a_system_without_such_sockets_keeps_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    assert socket_settings() == {}


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(300)
def test_workers_of_a_local_session_answer_through_a_socket_of_its_directory(spark: SparkSession) -> None:
    [peers] = spark.sparkContext.parallelize([None], 1).map(lambda _: _own_sockets()).collect()
    assert any(path.startswith(spark.conf.get(DIRECTORY)) for path in peers)


def _own_sockets() -> list[str]:
    """The paths of the Unix sockets that this process has open."""
    own = {each.stat().st_ino for each in Path("/proc/self/fd").iterdir() if each.exists()}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return [line[7] for line in lines if len(line) > 7 and int(line[6]) in own]
