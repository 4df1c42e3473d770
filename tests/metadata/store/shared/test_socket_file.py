from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.shared import socket_file
from odradek.broker.metadata.store.shared.server import FILE_NAME, StoreServer
from odradek.broker.metadata.store.shared.socket_file import ListeningSocket
from odradek.broker.metadata.store.shared.socket_file import connect as connect_to
from odradek.broker.metadata.store.store import StoreFailedError
from tests.metadata.store.shared.conftest import Connect


def test_only_the_owner_may_connect_at_any_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    chmod = Path.chmod

    def record(self: Path, mode: int) -> None:
        modes.append(stat.S_IMODE(self.stat().st_mode))
        chmod(self, mode)

    monkeypatch.setattr(Path, "chmod", record)
    before = os.umask(0)
    try:
        listening = ListeningSocket(path)
        assert os.umask(0) == 0
    finally:
        os.umask(before)

    assert [mode & 0o077 for mode in modes] == [0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listening.socket.close()


def test_the_file_of_a_dead_owner_is_replaced(path: Path) -> None:
    ListeningSocket(path).socket.close()
    assert path.exists()

    listening = ListeningSocket(path)

    connect_to(path).close()
    listening.socket.close()


def test_the_file_of_a_living_owner_is_refused_and_stays(path: Path) -> None:
    listening = ListeningSocket(path)

    with pytest.raises(StoreFailedError, match=f"another process serves the metadata at .*{FILE_NAME}"):
        ListeningSocket(path)

    connect_to(path).close()
    listening.socket.close()


def test_an_owner_whose_backlog_is_full_is_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(0)
        waiting = connect_to(path)

        with pytest.raises(StoreFailedError, match="another process serves"):
            ListeningSocket(path)

        waiting.close()


def test_another_file_is_refused_and_stays(path: Path) -> None:
    path.write_text("mine")

    with pytest.raises(StoreFailedError, match="no socket"):
        ListeningSocket(path)

    assert path.read_text() == "mine"


def test_two_that_start_together_do_not_replace_each_other(path: Path) -> None:
    with (
        socket_file._locked(path.parent),  # noqa: SLF001 - the moment of another start
        pytest.raises(StoreFailedError, match="another process starts"),
    ):
        ListeningSocket(path)

    ListeningSocket(path).socket.close()


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailedError, match=r"cannot listen at .*/gone/.*: No such file"):
        ListeningSocket(tmp_path / "gone" / FILE_NAME)


def test_the_file_of_a_successor_is_not_removed(path: Path) -> None:
    first = ListeningSocket(path)
    first.socket.close()
    second = ListeningSocket(path)

    first.remove_file()

    assert path.exists()
    second.remove_file()
    second.remove_file()
    assert not path.exists()
    second.socket.close()


async def test_the_path_may_be_longer_than_an_address(tmp_path: Path, owned: InMemoryStore) -> None:
    directory = tmp_path / ("long" * 40) / ("longer" * 30)
    directory.mkdir(parents=True)
    path = directory / FILE_NAME
    server = StoreServer(owned, path)
    await server.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    with pytest.raises(StoreFailedError, match="another process serves"):
        ListeningSocket(path)
    connect_to(path).close()

    await server.close()
    with pytest.raises(FileNotFoundError):
        connect_to(path)


def test_a_long_path_is_an_error_where_the_system_has_no_way_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_file, "_DESCRIPTORS", tmp_path / "none")
    directory = tmp_path / ("long" * 40)
    directory.mkdir()

    with pytest.raises(StoreFailedError, match=r"has \d+ bytes, .* at most \d+: use a shorter log.dirs"):
        ListeningSocket(directory / FILE_NAME)


async def test_a_server_that_has_ended_leaves_no_file(path: Path, owned: InMemoryStore, connect: Connect) -> None:
    server = StoreServer(owned, path)
    await server.start()
    await connect().check(b"")

    await server.close()
    await server.close()

    with pytest.raises(FileNotFoundError):
        connect_to(path)
