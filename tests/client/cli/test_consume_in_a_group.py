"""`consume --group` with real brokers, Odradek and Apache Kafka: no member reads a record that another has read."""

from __future__ import annotations

import signal

import pytest

from odradek.protocol.plural import pluralize
from tests.client.cli.commands import run, run_json, start
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("odradek", "apache")


@pytest.mark.process
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_member_continues_at_the_committed_offsets(
    bootstrap: str, make_topic: MakeTopic, sent: signal.Signals, status: int
) -> None:
    topic = await make_topic(2)
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    to = ("produce", *at, "--partitioner", "round-robin")
    await run(*to, stdin=b"".join(b"%d\n" % number for number in range(20)))
    member = ("consume", *at, "--group", f"group-of-{topic}", "--from-beginning")
    looked, _ = await run(*member, "--max-messages", "7", "--command-property", "enable.auto.commit=false")
    first, _ = await run(*member, "--max-messages", "7")
    assert len(looked) == 7
    second, _ = await run(*member, "--max-messages", "5", "--filter", "value~^1")
    assert len(first) == 7
    assert len(second) == 5
    left = sum(await lags(bootstrap, topic))
    process = await start(*member)
    assert process.stdout is not None
    third = [(await process.stdout.readline()).rstrip() for _ in range(left)]
    process.send_signal(sent)
    assert await process.communicate() == (b"", f"Processed a total of {pluralize(left, 'message')}\n".encode())
    assert process.returncode == status
    everything = first + second + third
    assert len(everything) == len(set(everything))
    not_printed = {b"%d" % number for number in range(20)} - set(everything)
    assert all(len(value) == 1 for value in not_printed)  # those that the filter passed over
    assert await lags(bootstrap, topic) == [0, 0]


async def lags(bootstrap: str, topic: str) -> list[int]:
    at = ("--bootstrap-server", bootstrap, "--group", f"group-of-{topic}")
    [described] = await run_json("groups", "describe", *at)
    return [10 if row["lag"] is None else row["lag"] for row in described["partitions"]]


@pytest.mark.process
async def test_members_share_the_partitions(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    group = f"group-of-{topic}"
    members = [
        await start("consume", *at, "--group", group, "--from-beginning", "--print", "partition,value") for _ in "ab"
    ]
    while True:
        described = await run_json("groups", "describe", *at[:2])
        mine = [one for one in described if one["group"] == group]
        if mine and mine[0]["state"] == "Stable" and [one["partitions"] for one in mine[0]["members"]] == [1, 1]:
            break
    for partition in ("0", "1"):
        await run("produce", *at, "--partition", partition, stdin=b"line\n")
    for member in members:
        assert member.stdout is not None
        assert (await member.stdout.readline()).endswith(b"\tline\n")
        member.send_signal(signal.SIGINT)
        assert (await member.communicate())[1] == b"Processed a total of 1 message\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--partition", "0"),
        ("--offset", "3"),
        ("--from-timestamp", "-1h"),
        ("--to-offset", "3"),
        ("--to-timestamp", "now"),
        ("--no-follow",),
    ],
)
async def test_flags_for_partitions_and_offsets_are_refused_with_a_group(arguments: tuple[str, ...]) -> None:
    _, err = await run("consume", "--topic", "t", "--group", "g", *arguments, status=2)
    assert "error: a group decides which partitions are read, and from which offset" in err
