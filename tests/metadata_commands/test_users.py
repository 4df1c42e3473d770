"""`odradek users`, on log directories without a broker."""

from __future__ import annotations

import asyncio
import getpass
import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.broker.metadata_commands.users import main
from odradek.broker.randomness import SystemRandomness
from odradek.broker.security.authentication.exchange import AuthenticationFailed
from odradek.broker.security.authentication.scram_exchange import ScramExchange
from odradek.broker.security.authentication.unknown_users import UnknownUsers
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS
from odradek.protocol.sasl.scram_client import ScramClient
from tests.metadata_commands.conftest import Stopped
from tests.peers import etcd, odradek
from tests.peers.server import Server

Users = Callable[..., int]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return tmp_path / "new" / "logs"


@pytest.fixture
def users(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Users:
    """Run `odradek users` on the directory, with lines of standard input."""

    def run(*arguments: str, typed: str = "") -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        return main([*arguments, "--override", f"log.dirs={log_dir}"])

    return run


def logs_in(broker: Broker, name: str, password: str, mechanism: str) -> bool:
    """Whether a client with this password is accepted for the users of a broker."""
    chosen, stored = SCRAM_MECHANISMS[mechanism], broker.services.metadata.image.scram_users
    exchange = ScramExchange(
        chosen, lambda user: stored.credential(mechanism, user), UnknownUsers(bytes(32)), SystemRandomness()
    )
    client = ScramClient(chosen, name, password, "nonce")
    try:
        client.verify(exchange.step(client.final(exchange.step(client.first()))))
    except AuthenticationFailed:
        return False
    return True


async def log_in_to(log_dir: Path, *attempts: tuple[str, str, str]) -> list[bool]:
    async with Broker({"log.dirs": str(log_dir)}) as broker:
        return [logs_in(broker, *attempt) for attempt in attempts]


def test_the_first_user_exists_before_the_broker_has_ever_run(
    users: Users, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert users("add", "alice", typed="alice-secret\n") == 0
    assert capsys.readouterr().out == "alice has the new password for SCRAM-SHA-256, SCRAM-SHA-512\n"
    assert stat.S_IMODE((log_dir / FILE_NAME).stat().st_mode) == 0o600
    assert sorted(path.name for path in log_dir.iterdir()) == [".lock", FILE_NAME]

    attempts = [("alice", password, name) for password in ("alice-secret", "wrong") for name in SCRAM_MECHANISMS]
    assert asyncio.run(log_in_to(log_dir, *attempts)) == [True, True, False, False]
    assert b"alice-secret" not in (log_dir / FILE_NAME).read_bytes()


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_only_a_line_feed_ends_a_password(users: Users, log_dir: Path, tmp_path: Path, end: str) -> None:
    password = "a\x0b\x0c\x1c\r\x85\u2028\u2029é"
    file = tmp_path / "password"
    file.write_bytes(f"{password}{end}".encode())
    file.chmod(0o600)
    assert users("add", "alice", typed=f"{password}{end}") == 0
    assert users("add", "bob", "--password-file", str(file)) == 0
    attempts = [(name, password, "SCRAM-SHA-512") for name in ("alice", "bob")]
    assert asyncio.run(log_in_to(log_dir, *attempts)) == [True, True]


def test_a_user_that_is_not_ascii_can_be_removed(users: Users, capsys: pytest.CaptureFixture[str]) -> None:
    assert users("remove", "löwe") == 1
    assert "there is no such user" in capsys.readouterr().err


def test_users_are_added_listed_and_removed_between_runs(
    users: Users, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(log_in_to(log_dir))
    assert users("list") == 0
    assert capsys.readouterr().out == "no users\n"
    assert users("add", "bob", "--mechanism", "SCRAM-SHA-512", "--iterations", "8192", typed="one\n") == 0
    assert users("add", "alice", typed="two\n") == 0
    capsys.readouterr()
    assert users("list") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["user", "mechanism", "iterations"],
        ["alice", "SCRAM-SHA-256", "4096"],
        ["alice", "SCRAM-SHA-512", "4096"],
        ["bob", "SCRAM-SHA-512", "8192"],
    ]
    assert users("add", "alice", "--mechanism", "SCRAM-SHA-256", typed="three\n") == 0
    assert asyncio.run(
        log_in_to(
            log_dir,
            ("alice", "three", "SCRAM-SHA-256"),
            ("alice", "two", "SCRAM-SHA-512"),
            ("bob", "one", "SCRAM-SHA-512"),
        )
    ) == [True, True, True]
    assert users("remove", "alice", "--mechanism", "SCRAM-SHA-512") == 0
    assert users("remove", "bob") == 0
    capsys.readouterr()
    users("list")
    assert capsys.readouterr().out.splitlines()[1:] == ["alice  SCRAM-SHA-256        4096"]


def test_the_user_may_be_named_by_the_flag_that_the_command_has_for_a_running_broker(
    users: Users, capsys: pytest.CaptureFixture[str]
) -> None:
    assert users("add", "--user", "alice", typed="one\n") == 0
    assert users("remove", "--entity-name", "alice", "--mechanism", "SCRAM-SHA-256") == 0
    capsys.readouterr()
    users("list")
    assert capsys.readouterr().out.splitlines()[1:] == ["alice  SCRAM-SHA-512        4096"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "one of the arguments NAME --user/--entity-name is required"),
        (("alice", "--user", "bob"), "argument --user/--entity-name: not allowed with argument NAME"),
    ],
)
def test_a_user_is_named_once(
    users: Users, arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        users("add", *arguments, typed="one\n")
    assert reason in capsys.readouterr().err


def test_what_root_creates_belongs_to_the_owner_of_the_directory(users: Users, log_dir: Path) -> None:
    log_dir.mkdir(parents=True)
    if os.geteuid() == 0:  # others create only what is theirs
        os.chown(log_dir, 12345, 54321)
    assert users("add", "alice", typed="secret\n") == 0
    assert {path.stat().st_uid for path in log_dir.iterdir()} == {log_dir.stat().st_uid}


@pytest.mark.parametrize("arguments", [("bob",), ("alice", "--mechanism", "SCRAM-SHA-512")])
def test_a_user_that_does_not_exist_cannot_be_removed(
    users: Users, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    users("add", "alice", "--mechanism", "SCRAM-SHA-256", typed="x\n")
    assert users("remove", *arguments) == 1
    assert "there is no such user" in capsys.readouterr().err


def test_a_password_comes_from_a_file_that_nobody_else_may_read(
    users: Users, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_text("grüße, =\nanother line\n")
    file.chmod(0o640)
    assert users("add", "alice", "--password-file", str(file)) == 1
    assert f"chmod 600 {file}" in capsys.readouterr().err
    assert not log_dir.exists()
    file.chmod(0o600)
    assert users("add", "alice", "--password-file", str(file)) == 0
    assert asyncio.run(log_in_to(log_dir, ("alice", "grüße, =", "SCRAM-SHA-256"))) == [True]


def test_a_dash_is_standard_input(users: Users, log_dir: Path) -> None:
    assert users("add", "alice", "--password-file", "-", typed="no line end") == 0
    assert asyncio.run(log_in_to(log_dir, ("alice", "no line end", "SCRAM-SHA-512"))) == [True]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is typed at the prompts of a terminal."""
    typed: list[str] = []
    monkeypatch.setattr(getpass, "getpass", lambda prompt: typed.pop(0))
    monkeypatch.setattr(sys, "stdin", Terminal())
    yield typed
    assert typed == []


def test_at_a_terminal_the_password_is_asked_for_twice(log_dir: Path, answers: list[str]) -> None:
    answers += ["secret", "secret"]
    assert main(["add", "alice", "--override", f"log.dirs={log_dir}"]) == 0
    assert asyncio.run(log_in_to(log_dir, ("alice", "secret", "SCRAM-SHA-256"))) == [True]


def test_two_passwords_that_differ_are_refused(
    log_dir: Path, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answers += ["secret", "secrets"]
    assert main(["add", "alice", "--override", f"log.dirs={log_dir}"]) == 1
    assert capsys.readouterr().err == "odradek: the two passwords differ\n"
    assert not log_dir.exists()


def test_an_interrupted_prompt_changes_nothing(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(getpass, "getpass", interrupt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["add", "alice", "--override", f"log.dirs={log_dir}"]) == 130
    assert not log_dir.exists()


@pytest.mark.parametrize("typed", ["", "\n", "a\0b\n", "x" * 4097])
def test_a_password_that_no_message_can_have_is_refused(
    users: Users, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert users("add", "alice", typed=typed) == 1
    error = capsys.readouterr().err
    assert "a password has 1 to 4096 characters" in error
    assert "xxx" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["add"],
        ["add", "löwe"],
        ["add", ""],
        ["add", "alice", "--iterations", "4095"],
        ["add", "alice", "--iterations", "16385"],
        ["add", "alice", "--mechanism", "PLAIN"],
        ["add", "alice", "--password", "secret"],
        ["remove"],
        ["list", "alice"],
        ["find"],
        [],
    ],
)
def test_a_wrong_command_line_has_status_2(users: Users, arguments: list[str], log_dir: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        users(*arguments, typed="x\n")
    assert ended.value.code == 2
    assert not log_dir.exists()


def test_flags_may_stand_before_the_action(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"secret\n")))
    assert main(["--override", f"log.dirs={log_dir}", "add", "list", "--override", "node.id=3"]) == 0
    assert main(["--override", f"log.dirs={log_dir}", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["list", "SCRAM-SHA-512", "4096"]


async def test_beside_a_running_broker_users_are_listed_but_not_changed(
    users: Users, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Broker({"log.dirs": str(log_dir)}):
        assert await asyncio.to_thread(users, "list") == 0
        for arguments in (("add", "alice"), ("remove", "alice")):
            assert await asyncio.to_thread(users, *arguments, typed="x\n") == 1
    assert capsys.readouterr().err.count("a broker is using the log directory") == 2


def test_a_directory_of_a_broker_in_a_cluster_needs_its_store(
    users: Users, stopped_in_cluster: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert users("add", "alice", typed="x\n") == 1
    assert "set metadata.etcd.endpoints" in capsys.readouterr().err
    assert not (log_dir / FILE_NAME).exists()


@pytest.fixture
def stopped_in_cluster(log_dir: Path) -> Path:
    """The directory of a broker whose metadata are in a shared store."""

    async def run() -> None:
        stopped = Stopped(log_dir, InMemoryStore())
        async with stopped.broker():
            pass
        await stopped.store.close()

    asyncio.run(run())
    return log_dir


class TestInEtcd:
    pytestmark = etcd.MARKS

    @pytest.fixture
    def cluster(self, tmp_path: Path) -> Iterator[etcd.Cluster]:
        cluster = etcd.prepare(tmp_path, 1)
        try:
            yield cluster.start()
        finally:
            cluster.kill()

    def run(self, broker: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
        config = broker.log_dir.parent / "server.properties"
        command = [sys.executable, "-m", "odradek", "users", "--config", str(config), *arguments]
        return subprocess.run(command, input="secret\n", capture_output=True, text=True, timeout=120, check=False)

    def test_users_are_changed_before_and_beside_brokers(self, tmp_path: Path, cluster: etcd.Cluster) -> None:
        broker = odradek.prepare(tmp_path / "broker", {"metadata.etcd.endpoints": cluster.endpoints[0]})
        assert self.run(broker, "add", "alice").returncode == 0
        broker.start()
        try:
            assert self.run(broker, "add", "bob").returncode == 0
            assert self.run(broker, "remove", "alice").returncode == 0
            listed = self.run(broker, "list")
        finally:
            broker.kill()
        assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["bob", "bob"]
