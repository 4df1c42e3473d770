from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.broker.testing.snapshots.command import main
from tests.handlers.requests import batch, create, produce
from tests.testing.snapshots.observed import observed
from tests.wire import Wire

GOLDEN = Path(__file__).parents[2] / "storage" / "golden_dirs"


async def filled(path: Path, value: bytes = b"before") -> dict[str, object]:
    """Start a broker on `path`, append a record to `t`, and return what is seen of it."""
    async with Broker({"log.dirs": str(path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        if "t" not in broker.services.metadata.image.topics:
            await create(wire, "t", 2)
        await produce(wire, "t", batch(value))
        return await observed(broker)


def modes_of_metadata(directory: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in directory.rglob(FILE_NAME)]


async def seen(path: Path) -> dict[str, object]:
    async with Broker({"log.dirs": str(path)}) as broker:
        return await observed(broker)


async def test_a_saved_log_directory_can_be_loaded_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir, saved = str(tmp_path / "log"), str(tmp_path / "saved")
    before = await filled(tmp_path / "log")

    assert main(["save", saved, "--log-dir", log_dir]) == 0
    assert capsys.readouterr().out.startswith("2 partitions, ")
    for _ in range(2):
        await filled(tmp_path / "log", b"after")
        assert main(["load", saved, "--log-dir", log_dir]) == 0
        assert await seen(tmp_path / "log") == before
    assert main(["load", saved, "--log-dir", str(tmp_path / "new")]) == 0
    assert await seen(tmp_path / "new") == before


async def test_a_copy_of_the_metadata_is_as_private_as_the_original(tmp_path: Path) -> None:
    await filled(tmp_path / "log")
    assert main(["save", str(tmp_path / "saved"), "--log-dir", str(tmp_path / "log")]) == 0
    assert main(["load", str(tmp_path / "saved"), "--log-dir", str(tmp_path / "new")]) == 0
    assert modes_of_metadata(tmp_path) == [0o600] * 3


async def test_a_directory_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_dir, saved = str(tmp_path / "log"), str(tmp_path / "saved")
    await filled(tmp_path / "log")
    assert main(["save", saved, "--log-dir", log_dir]) == 0
    async with Broker({"log.dirs": log_dir}):
        assert main(["save", str(tmp_path / "other"), "--log-dir", log_dir]) == 1
        assert main(["load", saved, "--log-dir", log_dir]) == 1
    assert capsys.readouterr().err.count("a broker is using the log directory") == 2
    assert not (tmp_path / "other").exists()


async def test_nothing_but_log_directories_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await filled(tmp_path / "log")
    log_dir, saved, home = str(tmp_path / "log"), str(tmp_path / "saved"), tmp_path / "home"
    home.mkdir()
    (home / "letter.txt").write_text("dear")
    assert main(["save", saved, "--log-dir", log_dir]) == 0

    assert main(["load", saved, "--log-dir", str(home)]) == 1
    assert main(["save", str(home), "--log-dir", log_dir]) == 1
    assert main(["save", str(tmp_path / "x"), "--log-dir", str(home)]) == 1
    assert main(["load", str(tmp_path / "nothing"), "--log-dir", log_dir]) == 1

    assert [each.name for each in home.iterdir()] == ["letter.txt"]
    assert "is no log directory" in capsys.readouterr().err


def test_a_log_directory_of_kafka_comes_back_byte_by_byte(tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    shutil.copytree(GOLDEN, log_dir)
    assert main(["save", str(tmp_path / "saved"), "--log-dir", str(log_dir)]) == 0
    for each in log_dir.rglob("*.log"):
        each.write_bytes(b"damaged")

    assert main(["load", str(tmp_path / "saved"), "--log-dir", str(log_dir)]) == 0

    assert contents(log_dir) == contents(GOLDEN)


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in directory.rglob("*")
        if each.is_file() and each.name != ".lock"
    }


def test_preallocated_files_stay_sparse(tmp_path: Path) -> None:
    partition = tmp_path / "log" / "t-0"
    partition.mkdir(parents=True)
    with (partition / f"{0:020d}.index").open("wb") as index:
        index.write(b"entry")
        index.truncate(64 << 20)
    (partition / f"{0:020d}.log").touch()

    assert main(["save", str(tmp_path / "saved"), "--log-dir", str(tmp_path / "log")]) == 0

    status = (tmp_path / "saved" / "t-0" / f"{0:020d}.index").stat()
    assert status.st_size == 64 << 20
    assert status.st_blocks * 512 <= 1 << 20
