from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.broker_config import PROPERTIES
from odradek.broker.config.property import Property, SecuredProperty, attribute_name
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import MetadataImage

THIS, OTHER = 7, 8
CHANGED = {
    "log.cleanup.policy": "compact",
    "compression.type": "zstd",
    "compression.gzip.level": "5",
    "compression.lz4.level": "5",
    "compression.zstd.level": "5",
    "log.cleaner.io.buffer.load.factor": "0.5",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "log.message.timestamp.type": "LogAppendTime",
    "log.preallocate": "true",
    "max.connections.per.ip.overrides": "127.0.0.1:2",
    "transaction.partition.verification.enable": "false",
    "unclean.leader.election.enable": "true",
}
ANY_NUMBER = "12345"


USERS = {
    "group.consumer.assignment.interval.ms": "coordinator/consumer_group/test_settings.py",
    "log.cleaner.backoff.ms": "maintenance/test_cleaner_threads.py",
    "log.cleaner.dedupe.buffer.size": "maintenance/test_cleaner_threads.py",
    "log.cleaner.io.buffer.load.factor": "maintenance/test_cleaner_threads.py",
    "log.cleaner.io.max.bytes.per.second": "maintenance/test_cleaner_threads.py",
    "max.connection.creation.rate": "server/test_connection_limits.py",
    "max.connections": "handlers/test_incremental_alter_configs.py",
    "max.connections.per.ip": "handlers/test_incremental_alter_configs.py",
    "max.connections.per.ip.overrides": "handlers/test_incremental_alter_configs.py",
    "num.replica.fetchers": "replication/follower/test_fetcher.py",
    "producer.id.expiration.ms": "handlers/test_incremental_alter_configs.py",
    "transaction.partition.verification.enable": "handlers/test_transactional_produce.py",
}
"""The tests that a change reaches the user of a property. `handlers/test_incremental_alter_configs.py` tests all topic
properties and their broker-wide defaults."""


@pytest.fixture
def config() -> CurrentConfig:
    return CurrentConfig(BrokerConfig.load(None, {"node.id": str(THIS), "message.max.bytes": "1000"}))


def image(*, of_all: dict[str, str] | None = None, groups: Any = None, **of_brokers: dict[str, str]) -> MetadataImage:
    of_each = {int(name.removeprefix("of_")): (texts, 1) for name, texts in of_brokers.items()}
    return MetadataImage(
        broker_configs={**of_each, **({None: (of_all, 1)} if of_all else {})},
        group_configs={group_id: (texts, 1) for group_id, texts in (groups or {}).items()},
    )


CHANGEABLE = [row for row in PROPERTIES.values() if row.dynamic and not isinstance(row, SecuredProperty)]
SECURED = [row for row in PROPERTIES.values() if isinstance(row, SecuredProperty)]


@pytest.mark.parametrize("row", CHANGEABLE, ids=lambda row: row.name)
def test_every_dynamic_property_changes_and_changes_back(config: CurrentConfig, row: Property[Any]) -> None:
    attribute, text = attribute_name(row.name), CHANGED.get(row.name, ANY_NUMBER)
    before = getattr(config.broker, attribute)

    config.apply(image(of_7={row.name: text}))
    assert getattr(config.broker, attribute) == row.parse(text) != before

    config.apply(image())
    assert getattr(config.broker, attribute) == before


@pytest.mark.parametrize("row", SECURED, ids=lambda row: row.name)
def test_no_stored_value_changes_a_property_of_security(config: CurrentConfig, row: Property[Any]) -> None:
    before = getattr(config.broker, attribute_name(row.name))
    config.apply(image(of_7={row.name: "true" if row.default is False else "1"}))
    assert getattr(config.broker, attribute_name(row.name)) == before


def test_every_dynamic_property_has_a_test_of_its_user() -> None:
    assert {row.name for row in CHANGEABLE if row.topic is None} == USERS.keys()
    assert all((Path(__file__).parents[1] / path).exists() for path in USERS.values())


def test_a_brokers_own_value_comes_before_that_of_all_brokers_before_its_file(config: CurrentConfig) -> None:
    name = "message.max.bytes"
    config.apply(image(of_all={name: "2000"}))
    assert config.broker.message_max_bytes == 2000

    config.apply(image(of_all={name: "2000"}, of_7={name: "3000"}))
    assert config.broker.message_max_bytes == 3000

    config.apply(image(of_8={name: "4000"}))
    assert config.broker.message_max_bytes == 1000


def test_a_configuration_that_was_read_never_changes(config: CurrentConfig) -> None:
    before = config.broker

    config.apply(image(of_all={"message.max.bytes": "2000"}))

    assert (before.message_max_bytes, config.broker.message_max_bytes) == (1000, 2000)


def test_callbacks_run_after_each_change_and_see_the_new_values(config: CurrentConfig) -> None:
    seen: list[int] = []
    config.on_change(lambda: seen.append(config.broker.message_max_bytes))

    config.apply(image(of_all={"message.max.bytes": "2000"}))
    config.apply(image(of_all={"message.max.bytes": "2000"}, groups={"g": {"consumer.session.timeout.ms": "50000"}}))
    config.apply(image())

    assert seen == [2000, 1000]


def test_a_topics_own_value_comes_before_the_brokers(config: CurrentConfig) -> None:
    config.apply(image(of_all={"message.max.bytes": "2000"}))

    assert config.log_config().max_message_bytes == 2000
    assert config.log_config({"max.message.bytes": "3000"}).max_message_bytes == 3000


def test_a_groups_own_value_comes_before_the_brokers(config: CurrentConfig) -> None:
    interval = "consumer.assignment.interval.ms"
    config.apply(image(of_all={f"group.{interval}": "2000"}, groups={"g": {interval: "0", "of.another.version": "1"}}))

    assert config.group_config("g").consumer_assignment_interval_ms == 0
    assert config.group_config("another").consumer_assignment_interval_ms == 2000


def test_a_groups_value_beyond_the_brokers_bounds_is_replaced_by_the_bound() -> None:
    config = CurrentConfig(BrokerConfig.load(None, {"group.consumer.max.session.timeout.ms": "46000"}))
    config.apply(image(groups={"g": {"consumer.session.timeout.ms": "50000"}}))

    assert config.group_config("g").consumer_session_timeout_ms == 46_000


def test_a_value_that_this_version_cannot_use_is_logged_once(
    config: CurrentConfig, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        config.apply(image(of_all={"message.max.bytes": "none"}))
        config.apply(image(of_all={"message.max.bytes": "none", "log.segment.bytes": "2000"}))

    assert (config.broker.message_max_bytes, config.broker.log_segment_bytes) == (1000, 2000)
    [record] = caplog.records
    assert "message.max.bytes ('none', set at run time) has no effect" in record.getMessage()
