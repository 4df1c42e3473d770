from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from odradek.broker.metadata.store.shared.server import FILE_NAME as SOCKET_NAME
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.sqlite import SqliteStore
from odradek.broker.storage.checkpoints.metadata_revision import SeenMetadata, write_metadata_revision
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.names import WORKERS_PLAN
from odradek.broker.workers.command import main
from tests.handlers.requests import batch, create, produce
from tests.workers.hosts import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one worker, which has stopped, and a topic with three partitions."""
    host = Host(tmp_path / "a")

    async def fill() -> None:
        async with host.running(1) as running, running.wire(1) as wire:
            await create(wire, "t", 3)
            for index in range(3):
                await produce(wire, "t", batch(b"value"), index)

    asyncio.run(fill())
    return host


def _run(host: Host, workers: int, *arguments: str) -> int:
    overrides = [each for name, text in host.properties(workers).items() for each in ("--override", f"{name}={text}")]
    return main([*overrides, *arguments])


def test_it_lists_workers_and_moves_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(host, 2) == 0
    assert capsys.readouterr().out == (
        "worker  node id  partitions  log directories\n"
        f"     0        1           3  {host.log_dirs[0]}\n"
        f"     1     1001           0  {host.log_dirs[0]}/worker.1\n"
        "\n"
        "num.workers = 2: --spread would move 1 partition.\n"
    )
    assert host.partitions(0) == {"t-0", "t-1", "t-2"}


def test_it_spreads(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(host, 2, "--spread") == 0
    shown = capsys.readouterr().out
    assert f"     1     1001           1  {host.log_dirs[0]}/worker.1\n" in shown
    assert "\n1 partition moved, in " in shown
    assert host.partitions(1) == {"t-1"}

    assert _run(host, 2, "--spread") == 0
    assert "\nEvery partition is at its worker, in " in capsys.readouterr().out


def test_its_output_for_programs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(host, 2, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["num_workers"], first["to_move"], first["is_unfinished"]) == (2, 1, False)
    assert _run(host, 2, "--spread", "--json") == 0
    second = json.loads(capsys.readouterr().out)
    assert (second["moved"], second["finished"], second["to_move"], second["remaining"]) == (1, 0, 0, [])
    path = str(host.log_dirs[0])
    assert second["workers"] == [
        {"worker": 0, "node_id": 1, "partitions": 2, "log_dirs": [path]},
        {"worker": 1, "node_id": 1001, "partitions": 1, "log_dirs": [f"{path}/worker.1"]},
    ]


def test_a_directory_with_other_files_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(host, 2, "--spread") == 0
    (host.log_dirs[0] / "worker.1" / "notes.txt").touch()
    capsys.readouterr()

    assert _run(host, 1, "--spread") == 0

    assert f"{host.log_dirs[0]}/worker.1 stays, because notes.txt is in it" in capsys.readouterr().out
    assert host.partitions(0) == {"t-0", "t-1", "t-2"}
    (host.log_dirs[0] / "worker.1" / "notes.txt").unlink()
    assert _run(host, 1, "--spread") == 0
    assert not (host.log_dirs[0] / "worker.1").exists()


def test_it_says_that_a_move_was_interrupted(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.log_dirs[0] / WORKERS_PLAN).touch()
    assert _run(host, 2) == 0
    assert "interrupted, and no broker starts: --spread finishes it" in capsys.readouterr().out


def test_beside_a_supervisor_it_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """The supervisor owns the store, also while no worker runs."""

    async def serve() -> int:
        store = await SqliteStore.open(host.store_path)
        server = StoreServer(store, host.log_dirs[0] / SOCKET_NAME)
        await server.start()
        status = await asyncio.to_thread(_run, host, 2, "--spread")
        await asyncio.sleep(0.1)  # until asyncio has begun and ended the connection that asked whether anybody serves
        await server.close()
        await store.close()
        return status

    assert asyncio.run(serve()) == 1
    assert capsys.readouterr().err.startswith("odradek: workers are running, stop them first")
    assert _run(host, 2, "--spread") == 0
    assert not (host.log_dirs[0] / SOCKET_NAME).exists()


def test_where_no_broker_has_run_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host(tmp_path)
    assert _run(host, 2) == _run(host, 2, "--spread") == 1
    assert "no broker has run with these log.dirs, start it first" in capsys.readouterr().err
    write_metadata_revision(OsFiles(), str(tmp_path), SeenMetadata(5, 3))
    assert _run(host, 2, "--spread") == 1
    assert "are in etcd: set metadata.etcd.endpoints" in capsys.readouterr().err


def test_a_wrong_configuration_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--override", "num.workers=many"]) == 1
    assert "num.workers" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["--override", "nonsense"])
