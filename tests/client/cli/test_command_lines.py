"""The order of flags on a command line, and mistakes that are found before a broker is called."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from odradek.client import Admin, NewTopic
from tests.client.cli.commands import run, run_json
from tests.client.conftest import MakeTopic

ROOT = Path(__file__).parents[3]


async def test_flags_may_stand_before_the_action_and_those_of_the_cluster_before_the_command(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    at = ("--bootstrap-server", bootstrap)
    out, _ = await run("topics", "describe", *at, "--topic", topic)
    for arguments in (
        ("topics", *at, "describe", "--topic", topic),
        ("topics", "--topic", topic, *at, "describe"),
        ("topics", f"--bootstrap-server={bootstrap}", f"--topic={topic}", "describe"),
        ("topics", "--boot", bootstrap, "--topic", topic, "describe"),
        (*at, "topics", "describe", "--topic", topic),
        (*at, "--command-property", "client.id=topics", "topics", "--topic", topic, "describe"),
    ):
        assert (await run(*arguments))[0] == out


async def test_the_value_of_a_flag_is_no_action(bootstrap: str) -> None:
    created = await run("topics", "--topic", "list", "--if-not-exists", "create", "--bootstrap-server", bootstrap)
    assert created == ([b"list is created"], "")
    _, err = await run("topics", "--topic", "list", status=2)
    assert "name an action: create, list, describe, " in err


async def test_cluster_without_an_action_describes_the_cluster(bootstrap: str) -> None:
    assert (await run_json("cluster", "--bootstrap-server", bootstrap))["brokers"]
    assert await run("cluster", "--bootstrap-server", bootstrap) == await run(
        "cluster", "describe", "--bootstrap-server", bootstrap
    )


@pytest.mark.parametrize("command", ["topics", "groups", "transactions", "configs", "perf"])
async def test_a_missing_action_is_an_error_that_names_all_actions(command: str) -> None:
    _, err = await run(command, "--bootstrap-server", "127.0.0.1:1", status=2)
    assert f"python -m client {command}: error: name an action: " in err


async def test_a_missing_command_is_an_error_that_names_all_commands() -> None:
    _, err = await run("--bootstrap-server", "127.0.0.1:1", status=2)
    assert err.endswith("error: name a command: produce, consume, topics, groups, transactions, configs, acls, "
                        "users, quotas, cluster, doctor, perf, dump-log\n")  # fmt: skip


async def test_help_needs_no_action() -> None:
    out, _ = await run("topics", "--topic", "t", "--help")
    assert b"    delete-records      Delete the oldest records of partitions" in out
    out, _ = await run("topics", "--topic", "t", "--help", "create")
    assert out[0].startswith(b"usage: python -m client topics create ")


async def test_the_version_is_that_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert await run("--version") == ([f"odradek {version}".encode()], "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("groups", "describe", "--group="), "argument --group: a name has at least one character"),
        (("topics", "describe", "--topic= "), "argument --topic: a name has at least one character"),
        (("configs", "describe", "--topic="), "argument --topic: a name has at least one character"),
        (("configs", "describe", "--broker", "-1"), "argument --broker: -1 is below 0"),
        (
            ("configs", "alter", "--topic", "t", "--delete-config", ","),
            "argument --delete-config: ',' names no property",
        ),
        (("consume", "--topic", "t", "--timeout-ms", "5s"), "'5s' is not a number of milliseconds, such as 3000"),
        (
            ("consume", "--topic", "t", "--timeout-ms", "0"),
            "'0' is not a number of milliseconds, such as 3000, and above 0",
        ),
        (("transactions", "list", "--duration-filter", "1m"), "'1m' is not a number of milliseconds, such as 60000"),
        (
            ("transactions", "find-hanging", "--topic", "t", "--max-transaction-timeout", "1h"),
            "'1h' is not a number of minutes, such as 15",
        ),
        (
            ("perf", "produce", "--topic", "t", "--num-records", "1", "--record-size", "1kB"),
            "'1kB' is not a number of bytes, such as 1000",
        ),
        (("groups", "list", "--state", "stable,Foo"), "argument --state: there is no Foo: there are Prep"),
        (("groups", "list", "--type", "Foo"), "argument --type: there is no Foo: there are classic, consumer, "),
        (("produce", "--topic", "t", "--timestamp", "-5"), "argument --timestamp: '-5' is not a time"),
        (("perf", "e2e", "--topic", "t", "--num-records", "1", "--record-size", "15"), "--record-size is at least 16"),
        (
            ("perf", "produce", "--topic", "t", "--num-records", "1", "--record-size", "9999999999"),
            "more than any broker",
        ),
    ],
)
async def test_an_invalid_value_is_refused_with_its_flag(arguments: tuple[str, ...], complaint: str) -> None:
    _, err = await run(*arguments, status=2)
    assert complaint in err


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("topics create --tpoic t", "topics create: error: there is no flag --tpoic; did you mean --topic?"),
        (
            "topics create --topic t --no-wait=1",
            "there is no flag --no-wait; python -m client topics create --help lists",
        ),
        ("topics --tpoic t create", "topics: error: there is no flag --tpoic; did you mean --topic?"),
        ("topics --lsit", "topics: error: there is no flag --lsit; did you mean --list?"),
        ("topics lsit", "topics: error: there is no action 'lsit'; did you mean list?"),
        ("topics list --describ", "topics list: error: there is no flag --describ; "),
        ("topics list orders", "topics list: error: there is no place for 'orders'"),
        ("consume -topic t", "consume: error: there is no flag -topic; did you mean --topic?"),
        ("consume --topic t --from_beginning", "there is no flag --from_beginning; did you mean --from-beginning?"),
        ("users add --user u --pasword-file f", "there is no flag --pasword-file; did you mean --password-file?"),
    ],
)
async def test_a_wrong_flag_is_one_line_with_the_nearest_flag(line: str, complaint: str) -> None:
    out, err = await run(*line.split(), status=2)
    assert out == []
    assert complaint in err
    assert err.count("\n") == 1


async def test_a_word_behind_two_dashes_or_with_a_space_is_no_flag() -> None:
    _, err = await run("topics", "list", "--", "--tpoic", status=2)
    assert "there is no flag --tpoic" in err  # no action of this command takes words
    _, err = await run("consume", "--topic", "t", "--filter", "-- x", status=2)
    assert "'-- x' is not a condition" in err


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("create --topic new --partitions 99999999999", "topics[0].num_partitions = 99999999999"),
        ("create --topic new --replication-factor 99999", "topics[0].replication_factor = 99999"),
        ("create --topic new --replica-assignment 99999999999", "assignments[0].broker_ids[0] = 99999999999"),
        ("delete-records --topic new --partition 0 --before-offset 99999999999999999999", ".offset = 9999"),
    ],
)
async def test_a_number_too_large_for_the_protocol_is_an_error(bootstrap: str, line: str, field: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topics([NewTopic("new")])
    _, err = await run("topics", *line.split(), "--bootstrap-server", bootstrap, status=1)
    assert "cannot carry" in err
    assert field in err
    assert "format requires" not in err
    assert err.count("\n") == 1
