"""`users` with a broker that runs, whose users then log in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from tests.client.cli.commands import run, run_json
from tests.metadata_commands.test_users import logs_in

PASSWORD = "a\x0b\x0c\x1c\r\x85\u2028\u2029é"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        yield broker


@pytest.mark.parametrize("end", ["\n", "\r\n", "\nanother line", ""])
async def test_only_a_line_feed_ends_the_password_in_a_file(broker: Broker, tmp_path: Path, end: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(f"{PASSWORD}{end}".encode())
    await run("users", "add", "--bootstrap-server", broker.bootstrap, "--user", "a", "--password-file", str(file))
    assert logs_in(broker, "a", PASSWORD, "SCRAM-SHA-512")


@pytest.mark.process
async def test_only_a_line_feed_ends_the_password_on_standard_input(broker: Broker) -> None:
    add = ("users", "add", "--bootstrap-server", broker.bootstrap, "--user", "a")
    await run(*add, stdin=f"{PASSWORD}\r\nanother line".encode())
    assert logs_in(broker, "a", PASSWORD, "SCRAM-SHA-512")


@pytest.mark.parametrize("action", ["add", "alter"])
async def test_a_user_that_no_broker_would_let_log_in_is_refused(broker: Broker, tmp_path: Path, action: str) -> None:
    file = tmp_path / "password"
    file.write_text("secret")
    to_add = ("--password-file", str(file)) if action == "add" else ("--add-config", "SCRAM-SHA-512=[password=x]")
    at = ("--bootstrap-server", broker.bootstrap)
    _, err = await run("users", action, *at, "--user", "é", *to_add, status=2)
    assert "brokers refuse the login of é: a user of SCRAM has a name of ASCII characters" in err
    assert await run_json("users", "list", *at) == []
    _, err = await run("users", "remove", *at, "--user", "é", status=1)  # another tool may have made it
    assert "RESOURCE_NOT_FOUND" in err


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (b"secret\xff\n", "is not UTF-8"),
        (b"\n", "the password is empty"),
    ],
)
async def test_a_password_that_nobody_could_type_is_refused(tmp_path: Path, value: bytes, complaint: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(value)
    _, err = await run("users", "add", "--user", "a", "--password-file", str(file), status=2)
    assert complaint in err
    assert "secret" not in err


@pytest.mark.parametrize("iterations", ["4095", "16385", "9" * 5000])
async def test_iterations_that_brokers_refuse_are_not_computed(iterations: str) -> None:
    config = f"SCRAM-SHA-512=[iterations={iterations},password=secret]"
    _, err = await run("users", "alter", "--user", "a", "--add-config", config, status=2)
    assert "secret" not in err
    _, err = await run("users", "add", "--user", "a", "--iterations", iterations, status=2)
    assert "argument --iterations: " in err
