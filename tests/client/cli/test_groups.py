"""`groups` with members of other clients and with real brokers: Odradek and Apache Kafka."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition
from confluent_kafka import Consumer as ConfluentConsumer

from odradek.client import Admin, Producer
from tests.client.cli.commands import run, run_json
from tests.client.conftest import MakeTopic

pytestmark = [pytest.mark.servers("odradek", "apache"), pytest.mark.usefixtures("ordinary_tasks")]


@asynccontextmanager
async def member(bootstrap: str, group: str, *topics: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, client_id="reader",
        auto_offset_reset="earliest",
    )  # fmt: skip
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def fill(bootstrap: str, topic: str) -> None:
    """Ten records in each of two partitions, a second apart."""
    async with Producer(bootstrap) as producer:
        for number in range(20):
            await producer.send(topic, b"%d" % number, partition=number % 2, timestamp=1000 * (number // 2 + 1))


async def test_a_group_with_members_and_without(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    group = f"group-of-{topic}"
    at = ("--bootstrap-server", bootstrap)
    await fill(bootstrap, topic)
    async with member(bootstrap, group, topic) as consumer:
        await asyncio.wait_for(consumer.getone(), 30)
        await consumer.commit({TopicPartition(topic, 1): 4})
        [described] = await run_json("groups", "describe", *at, "--group", group)
        listed = {row["group"]: row for row in await run_json("groups", "list", *at, "--state", "Stable")}
        out, _ = await run("groups", "describe", *at, "--group", group, "--members")
        reset = ("groups", "reset-offsets", *at, "--group", group, "--topic", topic, "--to-earliest", "--execute")
        _, refused = await run(*reset, status=1)
    assert (described["state"], described["type"], described["assignor"]) == ("Stable", "classic", "roundrobin")
    [one] = described["members"]
    assert (one["client_id"], one["partitions"], one["assignment"]) == ("reader", 2, [f"{topic}(0,1)"])
    assert described["partitions"][1] == {
        "group": group, "topic": topic, "partition": 1, "current_offset": 4, "log_end_offset": 10, "lag": 6,
        "consumer_id": one["consumer_id"], "host": one["host"], "client_id": "reader",
    }  # fmt: skip
    assert described["partitions"][0]["lag"] is None
    assert listed[group]["state"] == "Stable"
    assert out[0].decode().startswith(f"{group}  Stable, classic, 1 member, assigned by roundrobin, coordinator ")
    assert out[1].split() == b"GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID PARTITIONS ASSIGNMENT".split()
    assert refused == f"error: group {group} is Stable: its offsets can be reset only while it has no members\n"

    [described] = await run_json("groups", "describe", *at, "--group", group)
    assert (described["state"], described["members"]) == ("Empty", [])
    assert [row["lag"] for row in described["partitions"]] == [6]
    out, _ = await run("groups", "delete", *at, "--group", group)
    assert out == [f"{group} is deleted".encode()]
    _, err = await run("groups", "delete", *at, "--group", group, status=1)
    assert "GROUP_ID_NOT_FOUND" in err


async def test_a_group_of_the_consumer_protocol(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    group = f"group-of-{topic}"
    properties = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
    consumer = ConfluentConsumer({**properties, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    await fill(bootstrap, topic)
    consumer.subscribe([topic])
    try:
        while await asyncio.to_thread(consumer.poll, 1) is None:
            pass
        [described] = await run_json("groups", "describe", "--bootstrap-server", bootstrap, "--group", group)
        listed = await run_json("groups", "list", "--bootstrap-server", bootstrap, "--type", "consumer")
    finally:
        await asyncio.to_thread(consumer.close)
    assert (described["type"], described["state"], described["assignor"]) == ("consumer", "Stable", "uniform")
    assert described["epoch"] >= 1
    assert [member["assignment"] for member in described["members"]] == [[f"{topic}(0,1)"]]
    assert group in [row["group"] for row in listed]


async def test_every_way_to_reset_offsets(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = await make_topic(2)
    group = f"group-of-{topic}"
    at = ("--bootstrap-server", bootstrap, "--group", group)
    await fill(bootstrap, topic)

    async def committed() -> list[int | None]:
        [described] = await run_json("groups", "describe", *at)
        return [row["current_offset"] for row in described["partitions"]]

    async def planned(*arguments: str) -> list[int]:
        return [row["new_offset"] for row in await run_json("groups", "reset-offsets", *at, *arguments)]

    whole = ("--topic", topic)
    assert await planned(*whole, "--to-offset", "3") == [3, 3]
    assert (await run("groups", "describe", *at, status=1))[1].count("GROUP_ID_NOT_FOUND") == 1  # that was a dry run
    assert await planned(*whole, "--to-offset", "3", "--execute") == [3, 3]
    assert await committed() == [3, 3]
    assert await planned("--topic", f"{topic}:1", "--shift-by", "-2", "--execute") == [1]
    assert await committed() == [3, 1]
    assert await planned("--all-topics", "--shift-by", "5", "--dry-run") == [8, 6]
    assert await planned("--all-topics", "--shift-by", "-100") == [0, 0]
    assert await planned(*whole, "--to-offset", "100") == [10, 10]
    assert await planned(*whole, "--to-earliest") == [0, 0]
    assert await planned(*whole, "--to-latest") == [10, 10]
    assert await planned(*whole, "--to-current") == [3, 1]
    assert await planned(*whole, "--to-datetime", "1970-01-01T00:00:03.500") == [3, 3]
    assert await planned(*whole, "--by-duration", "PT1H") == [10, 10]
    assert await planned(*whole, "--by-duration", "30000d") == [0, 0]
    out, err = await run("groups", "reset-offsets", *at, *whole, "--to-current", "--export")
    assert out == [f"{topic},0,3".encode(), f"{topic},1,1".encode()]
    assert err == "dry run: nothing was changed; --execute changes the offsets\n"
    file = tmp_path / "offsets.csv"
    file.write_text(f'"group","topic","partition","offset"\n{group},{topic},0,9\n')
    out, err = await run("groups", "reset-offsets", *at, "--from-file", str(file), "--execute", "--json")
    assert err == ""
    rows = json.loads(b"\n".join(out))
    assert rows == [{"group": group, "topic": topic, "partition": 0, "current_offset": 3, "new_offset": 9}]
    assert await committed() == [9, 1]

    out, _ = await run("groups", "delete-offsets", *at, "--topic", f"{topic}:0")
    assert out == [f"the offset of {topic}-0 is deleted".encode()]
    assert await committed() == [1]
    _, err = await run("groups", "reset-offsets", *at, *whole, "--shift-by", "1", status=1)
    assert err == f"error: {topic}-0 cannot be shifted: the group has committed no offset of it\n"
    file.write_text(f"{topic},zero,9\n{topic},0,x\n")
    _, err = await run("groups", "reset-offsets", *at, "--from-file", str(file), status=1)
    assert "is not of the form topic,partition,offset" in err
    file.write_text("\n")
    _, err = await run("groups", "reset-offsets", *at, "--from-file", str(file), status=1)
    assert err == f"error: {file} has no line of the form topic,partition,offset\n"
    unknown = ("--bootstrap-server", bootstrap, "--group", f"{group}-typo")
    out, err = await run("groups", "reset-offsets", *unknown, "--all-topics", "--to-earliest", "--execute")
    assert (out, err) == ([], f"nothing to reset: group {group}-typo has committed no offsets\n")


async def delete_groups(bootstrap: str) -> None:
    """Delete the groups of other tests, when the sessions of their static members have ended."""
    async with Admin(bootstrap) as admin, asyncio.timeout(60):
        while groups := await admin.list_groups():
            await admin.delete_groups(groups)
            await asyncio.sleep(0.1)


async def test_all_groups_are_reset_described_and_deleted_together(
    bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = await make_topic(2)
    at = ("--bootstrap-server", bootstrap)
    await delete_groups(bootstrap)
    await fill(bootstrap, topic)
    reset = ("groups", "reset-offsets", *at)
    for group, offset in (("a", "3"), ("b", "5")):
        await run(*reset, "--group", group, "--topic", topic, "--to-offset", offset, "--execute")

    async def committed() -> list[tuple[str, int, int]]:
        groups = await run_json("groups", "describe", *at, "--all-groups")
        return [(row["group"], row["partition"], row["current_offset"]) for one in groups for row in one["partitions"]]

    assert await committed() == [("a", 0, 3), ("a", 1, 3), ("b", 0, 5), ("b", 1, 5)]
    out, _ = await run(*reset, "--all-groups", "--all-topics", "--shift-by", "1", "--export")
    assert out == [f"{group},{topic},{number},{offset}".encode() for group, offset in (("a", 4), ("b", 6))
                   for number in (0, 1)]  # fmt: skip
    file = tmp_path / "offsets.csv"
    file.write_bytes(b"\n".join(out[1:]))  # a: partition 1 alone
    read_end, write_end = os.pipe()
    os.write(write_end, file.read_bytes())
    os.close(write_end)
    async with member(bootstrap, "busy", topic) as consumer:
        await asyncio.wait_for(consumer.getone(), 30)
        _, err = await run(*reset, "--all-groups", "--from-file", f"/dev/fd/{read_end}", "--execute", status=1)
    os.close(read_end)
    assert err == "error: group busy is Stable: its offsets can be reset only while it has no members\n"
    await run("groups", "delete", *at, "--group", "busy")
    assert await committed() == [("a", 0, 3), ("a", 1, 4), ("b", 0, 6), ("b", 1, 6)]
    _, err = await run(*reset, "--group", "other", "--from-file", str(file))
    assert err == f"nothing to reset: {file} has no line of group other\n"
    out, _ = await run("groups", "delete", *at, "--all-groups")
    assert out == [b"a is deleted", b"b is deleted"]
    assert await committed() == []


async def test_all_groups_and_names_exclude_each_other() -> None:
    for action in ("describe", "delete", "reset-offsets"):
        _, err = await run("groups", action, "--group", "a", "--all-groups", status=2)
        assert "argument --all-groups: not allowed with argument --group" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("groups",),
        ("groups", "delete"),
        ("groups", "reset-offsets", "--group", "g", "--topic", "t"),
        ("groups", "reset-offsets", "--group", "g", "--to-earliest"),
        ("groups", "reset-offsets", "--group", "g", "--to-earliest", "--topic", "t", "--all-topics"),
        ("groups", "reset-offsets", "--group", "g", "--to-earliest", "--topic", "t", "--execute", "--dry-run"),
        ("groups", "reset-offsets", "--group", "g", "--by-duration", "long", "--topic", "t"),
        ("groups", "reset-offsets", "--group", "g", "--to-earliest", "--topic", "t:x"),
    ],
)
async def test_a_wrong_command_line_is_refused(arguments: tuple[str, ...]) -> None:
    _, err = await run(*arguments, status=2)
    assert err.startswith("python -m client groups")
    assert err.count("\n") == 1
