"""The nearest name in the errors about topics that do not exist, in every command that names one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.client import Admin, NewTopic
from tests.client.cli.commands import run

NO_ORDRES = "error: there is no topic ordres; did you mean orders?\n"


@pytest.fixture
async def at() -> AsyncIterator[tuple[str, str]]:
    """The flag of a broker that has the topic `orders` and creates none by itself."""
    async with Broker({"auto.create.topics.enable": "false"}) as broker:
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("orders")])).values_or_raise()
        yield "--bootstrap-server", broker.bootstrap


@pytest.mark.parametrize(
    "line",
    [
        "consume --topic ordres",
        "consume --topic ordres --group g --command-property auto.offset.reset=earliest",
        "topics describe --topic ordres",
        "topics describe --topic ordres --topic orders",
        "topics offsets --topic ordres",
        "topics offsets --topic ordres --partition 0",
        "topics alter --topic ordres --partitions 3",
        "topics alter --topic ordres --config retention.ms=1",
        "topics delete --topic ordres",
        "topics delete-records --topic ordres --before-offset latest",
        "configs describe --topic ordres",
        "configs describe --entity-type topics --entity-name ordres",
        "configs alter --topic ordres --delete-config retention.ms",
        "groups reset-offsets --group g --topic ordres --to-earliest",
        "groups reset-offsets --group g --topic ordres:0,1 --to-earliest",
        "transactions describe-producers --topic ordres --partition 0",
        "perf consume --topic ordres --num-records 1 --timeout-ms 200",
        "perf produce --topic ordres --num-records 1 --record-size 1 --command-property max.block.ms=200",
    ],
)
async def test_an_unknown_topic_is_an_error_with_the_nearest_name(at: tuple[str, str], line: str) -> None:
    _, err = await run(*line.split(), *at, status=1)
    assert NO_ORDRES in err
    assert err.count("error:") == 1


@pytest.mark.process
async def test_produce_names_the_nearest_topic(at: tuple[str, str]) -> None:
    produce = ("produce", "--topic", "ordres", "--command-property", "max.block.ms=200")
    _, err = await run(*produce, *at, stdin=b"x\n", status=1)
    assert err == NO_ORDRES


async def test_without_a_similar_name_the_error_names_none(at: tuple[str, str]) -> None:
    _, err = await run("topics", "describe", "--topic", "payments", *at, status=1)
    assert err == "error: there is no topic payments. Check its name, or create it\n"


async def test_a_missing_partition_of_a_topic_that_exists_is_no_missing_topic(at: tuple[str, str]) -> None:
    _, err = await run("topics", "offsets", "--topic", "orders", "--partition", "7", *at, status=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION (the topic has 1 partition)" in err
