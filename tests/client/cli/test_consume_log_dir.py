"""`consume --log-dir`: the records of a directory that Kafka has written, and of one of ours, without a broker."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client import Admin, NewTopic, Producer
from tests.client.cli.commands import run
from tests.storage.offline.test_stored_log_dir import state_of
from tests.storage.test_golden import HERE, expected

GOLDEN = str(HERE / "golden_dirs")


async def consume(*arguments: str, log_dir: str = GOLDEN) -> list[dict[str, Any]]:
    out, err = await run("consume", "--log-dir", log_dir, "--json", *arguments)
    assert err == f"Processed a total of {len(out)} message{'' if len(out) == 1 else 's'}\n"
    return [json.loads(line) for line in out]


def text(value: str | None) -> str | None:
    return None if value is None else base64.b64decode(value).decode()


@pytest.mark.parametrize("topic", ["codec-none", "codec-zstd", "compacted", "logappend", "idempotent", "transactional"])
async def test_the_records_are_those_that_kafkas_consumer_got(topic: str) -> None:
    wanted = expected(f"{topic}.records")
    found = await consume("--topic", topic)
    assert [(one["offset"], one["timestamp"]) for one in found] == [(one["offset"], one["timestamp"]) for one in wanted]
    kinds = {0: "none", 1: "CreateTime", 2: "LogAppendTime"}
    if topic == "logappend":
        assert {one["timestamp_type"] for one in found} == {"LogAppendTime"}
    elif topic == "transactional":
        assert kinds[wanted[0]["timestamp_type"]] == found[0]["timestamp_type"] == "CreateTime"
        assert [(one["key"], one["value"]) for one in found] == [
            (text(one["key"]), text(one["value"])) for one in wanted
        ]


async def test_read_committed_leaves_out_aborted_and_open_transactions() -> None:
    found = await consume("--topic", "transactional", "--isolation-level", "read_committed")
    assert [one["offset"] for one in found] == [one["offset"] for one in expected("transactional.read_committed")]


async def test_ranges_filters_and_formats_are_those_of_consume() -> None:
    async def offsets(*arguments: str) -> list[int]:
        return [one["offset"] for one in await consume("--topic", "codec-none", *arguments)]

    records = expected("codec-none.records")
    times = [one["timestamp"] for one in records]
    assert await offsets("--offset", "190") == [*range(190, 200)]
    assert await offsets("--offset", "-2") == [198, 199]
    assert await offsets("--offset", "latest") == []
    assert await offsets("--offset", "500") == []
    assert await offsets("--from-beginning", "--to-offset", "2") == [0, 1]
    assert await offsets("--from-timestamp", str(times[197])) == [197, 198, 199]
    assert await offsets("--from-timestamp", str(times[-1] + 1)) == []
    assert await offsets("--to-timestamp", str(times[2])) == [0, 1]
    assert await offsets("--max-messages", "1", "--offset", "7") == [7]
    out, err = await run("consume", "--log-dir", GOLDEN, "--topic", "codec-none", "--format", r"%t-%p@%o\n",
                         "--max-messages", "1")  # fmt: skip
    assert (out, err) == ([b"codec-none-0@0"], "Processed a total of 1 message\n")
    key = next(text(one["key"]) for one in records if one["key"])
    out, _ = await run("consume", "--log-dir", GOLDEN, "--topic", "codec-none", "--filter", f"key={key}")
    assert len(out) == sum(text(one["key"]) == key for one in records) > 0


async def test_a_directory_of_ours_is_read_by_partitions_and_not_changed(tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    async with Broker({"log.dirs": str(log_dir)}) as broker:
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("t", 3)])).values_or_raise()
        async with Producer(broker.bootstrap) as producer:
            for number in range(6):
                await (await producer.send("t", b"%d" % number, b"k", number % 3, [("h", b"x")]))
        living = [one["value"] for one in await consume("--topic", "t", log_dir=str(log_dir))]
    before = state_of(log_dir)
    found = await consume("--topic", "t", log_dir=str(log_dir))
    assert [one["value"] for one in found] == living == ["0", "3", "1", "4", "2", "5"]
    assert found[0]["headers"] == [["h", "x"]]
    assert [one["value"] for one in await consume("--topic", "t", "--partition", "2,0", log_dir=str(log_dir))] == [
        "0", "3", "2", "5",
    ]  # fmt: skip
    assert state_of(log_dir) == before


async def test_records_in_front_of_damage_are_printed_and_a_torn_end_is_a_warning(tmp_path: Path) -> None:
    golden = Path(shutil.copytree(GOLDEN, tmp_path / "logs"))
    with (golden / "codec-none-0" / f"{0:020d}.log").open("ab") as log:
        log.write(b"torn")
    out, err = await run("consume", "--log-dir", str(golden), "--topic", "codec-none")
    assert len(out) == 200
    assert err.startswith("warning: ")
    assert "cutting off 4 bytes" in err
    assert err.endswith("Processed a total of 200 messages\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--topic", "codec-noen"), f"error: there is no topic codec-noen in {GOLDEN}; did you mean codec-none?\n"),
        (("--topic", "rolled", "--partition", "7"), f"error: there is no rolled-7 in {GOLDEN}\n"),
    ],
)
async def test_what_is_not_there_is_an_error(arguments: tuple[str, ...], complaint: str) -> None:
    assert await run("consume", "--log-dir", GOLDEN, *arguments, status=1) == ([], complaint)


async def test_a_path_that_is_no_log_directory_is_an_error(tmp_path: Path) -> None:
    _, err = await run("consume", "--log-dir", str(tmp_path / "none"), "--topic", "t", status=1)
    assert err == f"error: {tmp_path}/none: No such file or directory\n"
    _, err = await run("consume", "--log-dir", str(tmp_path), "--topic", "t", status=1)
    assert "no log directory" in err


@pytest.mark.parametrize("flags", [("--group", "g"), ("--follow",), ("--timeout-ms", "5")])
async def test_flags_of_a_broker_are_refused(flags: tuple[str, ...]) -> None:
    _, err = await run("consume", "--log-dir", GOLDEN, "--topic", "rolled", *flags, status=2)
    assert "a log directory has no groups and no new records" in err
