"""The command line, on the store of a broker alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.access_rules import create_rules
from odradek.broker.metadata.administration.scram_users import unknown_users_secret
from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.broker.metadata_commands.command import main
from odradek.broker.security.access.rule import AccessRule
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from tests.handlers.requests import create
from tests.wire import Wire


def _topic(log_dir: Path, name: str) -> None:
    """Run a broker, and create a topic of three partitions."""

    async def run() -> None:
        async with Broker({"log.dirs": str(log_dir)}) as broker, Wire("127.0.0.1", broker.port) as wire:
            await create(wire, name, 3)

    asyncio.run(run())


def _run(log_dir: Path, action: str, *arguments: str) -> int:
    return main([action, *arguments, "--override", f"log.dirs={log_dir}"])


def test_show_prints_cluster_brokers_and_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _topic(tmp_path, "orders")
    names = sorted(each.name for each in tmp_path.iterdir())

    assert _run(tmp_path, "show") == 0

    head, brokers, topics = capsys.readouterr().out.split("\n\n")
    assert head.startswith(f"store            {tmp_path / FILE_NAME}, keys under /odradek/v1, revision ")
    assert f"\nlog directories  {tmp_path}: of cluster " in head
    assert brokers.splitlines()[1].split()[:2] == ["1", "stopped"]
    assert topics.splitlines()[1].split()[:1] + topics.splitlines()[1].split()[2:] == ["orders", "3", "1", "0", "0"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names


def test_dump_prints_every_key_with_its_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _topic(tmp_path, "orders")

    assert _run(tmp_path, "dump") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert _run(tmp_path, "dump", "topics/names/") == 0
    [named] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    by_key = {row["key"]: row for row in rows}
    assert by_key["/odradek/v1/topics/names/orders"] == named
    assert (named["value"]["partitions"], named["created"]) == (3, named["changed"])
    assert [row["topic"] for row in rows if row["key"].endswith("/p/00000002")] == ["orders"]
    assert "/odradek/v1/cluster" in by_key


def test_dump_prints_access_rules_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = AccessRule(
        ResourceType.TOPIC, PatternType.PREFIXED, "orders", "User:alice", "*", Operation.READ, PermissionType.DENY
    )

    async def create_rule() -> None:
        async with Broker({"log.dirs": str(tmp_path)}) as broker:
            await create_rules(broker.services.metadata, [rule])

    asyncio.run(create_rule())

    assert _run(tmp_path, "dump", "security/rules/") == 0
    [row] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert row["value"] == {
        "resource_type": "TOPIC",
        "pattern_type": "PREFIXED",
        "name": "orders",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission": "DENY",
    }


def test_dump_hides_credentials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        async with Broker({"log.dirs": str(tmp_path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
            upsertion = ScramCredentialUpsertion("alice", 1, 4096, b"the salt", b"x" * 32)
            await wire.ask(AlterUserScramCredentialsRequest([], [upsertion]), 0)
            await unknown_users_secret(broker.services.metadata)

    asyncio.run(run())

    assert _run(tmp_path, "dump", "scram/") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["key"].removeprefix("/odradek/v1/scram/"): row["value"] for row in rows} == {
        "secret": "(hidden)",
        "users/alice": "(hidden)",
    }


def test_dump_reads_beside_a_running_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> int:
        async with Broker({"log.dirs": str(tmp_path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "orders")
            return await asyncio.to_thread(_run, tmp_path, "dump", "/odradek/v1/brokers/ids/")

    assert asyncio.run(run()) == 0
    [row] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["key"], row["value"]["state"]) == ("/odradek/v1/brokers/ids/1", "running")
    assert row["lease"] > 0


def test_dump_reads_what_a_killed_broker_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last transactions are in the write-ahead log only."""
    killed = tmp_path / "killed"

    async def run() -> None:
        async with Broker({"log.dirs": str(tmp_path / "log")}) as broker, Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "orders")
            killed.mkdir()
            for name in (FILE_NAME, f"{FILE_NAME}-wal"):
                shutil.copyfile(tmp_path / "log" / name, killed / name)

    asyncio.run(run())

    assert _run(killed, "dump", "topics/names/") == 0
    assert '"key":"/odradek/v1/topics/names/orders"' in capsys.readouterr().out


def test_a_value_that_is_no_json_is_printed_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _topic(tmp_path, "orders")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE kv SET value = ? WHERE key = ?", (b"\xffbroken", b"/odradek/v1/topics/names/orders"))

    assert _run(tmp_path, "dump", "topics/names/") == 0
    assert json.loads(capsys.readouterr().out)["base64"] == "/2Jyb2tlbg=="


@pytest.mark.parametrize("action", ["show", "dump"])
def test_a_directory_without_metadata_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    assert _run(tmp_path, action) == 1
    assert capsys.readouterr().err == (
        f"odradek: {tmp_path / FILE_NAME} does not exist: no broker alone has run with these log.dirs\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE_NAME).write_text("no database at all, but long enough to be read as one" * 10)

    assert _run(tmp_path, "dump") == 1
    assert "cannot read the metadata" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["create-cluster", "accept-backup"])
def test_a_broker_alone_needs_no_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str) -> None:
    assert _run(tmp_path, action, "--yes") == 1
    assert "metadata.etcd.endpoints is not set" in capsys.readouterr().err


def test_a_wrong_configuration_is_reported_as_by_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--override", "log.dir=x", "--override", "metadata.etcd.endpoint=h:1"]) == 1
    assert "unknown property metadata.etcd.endpoint" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["shw"], ["dump", "--yes"], ["show", "--override", "x"]])
def test_a_wrong_command_line_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("odradek metadata")
    assert err.count("\n") == 1
