from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.startup.machine import Machine
from odradek.broker.startup.worker_directories import partitions_left_behind, refuse_unfinished
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import WORKERS_PLAN
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire


def _config(*log_dirs: Path, **properties: str) -> BrokerConfig:
    named = {name.replace("_", "."): text for name, text in properties.items()}
    return BrokerConfig.load(None, {"log.dirs": ",".join(map(str, log_dirs))} | named)


def test_a_plan_in_any_of_the_directories_is_a_reason(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    config = _config(tmp_path / "a", tmp_path / "b")
    assert refuse_unfinished(config) is None
    (tmp_path / "b" / WORKERS_PLAN).touch()
    assert f"{tmp_path / 'b' / WORKERS_PLAN} exists" in str(refuse_unfinished(config))


def test_the_plan_is_a_reason_for_the_directories_of_workers(tmp_path: Path) -> None:
    (tmp_path / "worker.1").mkdir()
    (tmp_path / "worker-1").mkdir()
    (tmp_path / WORKERS_PLAN).touch()
    assert "odradek workers --spread" in str(refuse_unfinished(_config(tmp_path / "worker.1")))
    assert refuse_unfinished(_config(tmp_path / "worker-1")) is None
    assert refuse_unfinished(_config(tmp_path / "worker.01")) is None


def test_partitions_beyond_the_last_worker_are_left_behind(tmp_path: Path) -> None:
    for name in ("worker.1/t-0", "worker.2/t-1", "worker.2/t-2", "worker.3/x", "worker.4/t-1.0f-stray"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "worker.5").touch()
    [one] = partitions_left_behind(_config(tmp_path, num_workers="2"))
    assert one.startswith(f"{tmp_path}/worker.2 holds 2 partitions, but num.workers = 2")
    assert "run `odradek workers --spread`" in one
    assert len(partitions_left_behind(_config(tmp_path))) == 2
    assert partitions_left_behind(_config(tmp_path, num_workers="3")) == []
    assert partitions_left_behind(_config(tmp_path / "missing")) == []


def _names(path: Path) -> list[Path]:
    return sorted(path.rglob("*"))


@pytest.mark.parametrize("name", [WORKERS_PLAN, "worker.1/t-1/00000000000000000000.log"])
async def test_a_broker_is_refused_and_a_read_only_one_is_not(tmp_path: Path, name: str) -> None:
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"value"))
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    before = _names(tmp_path)

    with pytest.raises(LogDirRefusedError, match="odradek workers --spread"):
        await Broker(properties).start()

    assert _names(tmp_path) == before
    async with Broker(properties, read_only=True) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "t")) == [b"value"]


class InterruptedMove(OsFiles):
    """A move of partitions writes its plan and is killed, between a broker's first check and its lock."""

    def lock(self, path: str) -> int:
        Path(path).with_name(WORKERS_PLAN).touch()
        return super().lock(path)


async def test_a_move_that_is_killed_while_the_broker_starts_refuses_it(tmp_path: Path) -> None:
    async with Broker({"log.dirs": str(tmp_path)}):
        pass
    with pytest.raises(LogDirRefusedError, match="odradek workers --spread"):
        await Broker({"log.dirs": str(tmp_path)}, machine=Machine(new_files=InterruptedMove)).start()
    (tmp_path / WORKERS_PLAN).unlink()
    async with Broker({"log.dirs": str(tmp_path)}):  # the other one has released its locks
        pass
