"""The order of DescribeConfigs rows against that of Apache Kafka 4.3.1 (data/README.md)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.describe import ConfigRow, describe_broker
from odradek.broker.config.describe_order import BROKER_PROPERTIES, GROUP_PROPERTIES, TOPIC_PROPERTIES, in_kafkas_order
from odradek.broker.config.group_config import describe as describe_group
from odradek.broker.config.topic_config import describe

CONFIG = BrokerConfig.load()
ROWS = {
    "broker": (describe_broker(CONFIG), BROKER_PROPERTIES),
    "topic": (describe(CONFIG), TOPIC_PROPERTIES),
    "group": (describe_group(CONFIG), GROUP_PROPERTIES),
}


def _facts(kind: str) -> list[str]:
    lines = (Path(__file__).parent / "data" / "describe-order.tsv").read_text().splitlines()[1:]
    return [name for resource, name in (line.split("\t") for line in lines) if resource == kind]


@pytest.mark.parametrize("kind", ROWS)
def test_all_rows_are_in_kafkas_order(kind: str) -> None:
    rows, count = ROWS[kind]
    facts, described = _facts(kind), {row.name for row in rows}

    assert len(facts) == count
    assert [row.name for row in in_kafkas_order(rows, count) if row.name in facts] == [
        name for name in facts if name in described
    ]


@pytest.mark.parametrize("kind", ROWS)
def test_some_rows_are_in_the_order_of_all(kind: str) -> None:
    rows, count = ROWS[kind]
    every = [row.name for row in in_kafkas_order(rows, count)]
    chosen: list[ConfigRow] = random.Random(1).sample(rows, 3)

    names = [row.name for row in in_kafkas_order(chosen, count)]

    assert names == sorted(names, key=every.index)
