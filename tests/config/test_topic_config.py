from __future__ import annotations

import msgspec
import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.topic_config import log_config, validate
from odradek.broker.storage.log_config import LogConfig
from odradek.protocol.errors import ErrorCode, KafkaError


def test_a_topic_without_properties_has_the_defaults_of_log_config() -> None:
    assert log_config(BrokerConfig.load()) == LogConfig()


def test_a_topics_own_value_takes_precedence_over_the_run_time_value_over_the_file() -> None:
    config = BrokerConfig.load(
        None, {"log.segment.bytes": "1000", "log.retention.ms": "1000", "message.max.bytes": "1000"}
    )
    altered = config.altered({"log.segment.bytes": "2000", "log.retention.ms": "2000"})

    effective = log_config(altered, {"segment.bytes": "3000"})

    assert (effective.segment_bytes, effective.retention_ms, effective.max_message_bytes) == (3000, 2000, 1000)


def test_values_have_the_types_of_the_log() -> None:
    effective = log_config(
        BrokerConfig.load(None, {"log.roll.hours": "2"}),
        {"cleanup.policy": "compact, delete", "preallocate": "TRUE", "min.cleanable.dirty.ratio": "0.25"},
    )

    assert effective.cleanup_policy == frozenset({"compact", "delete"})
    assert (effective.preallocate, effective.min_cleanable_dirty_ratio, effective.segment_ms) == (True, 0.25, 7_200_000)
    assert msgspec.convert(msgspec.structs.asdict(effective), LogConfig, strict=True) == effective


def test_properties_that_no_topic_has_are_in_the_log_config() -> None:
    config = BrokerConfig.load(None, {"record.validation": "records"})

    effective = log_config(config.altered({"producer.id.expiration.ms": "5"}))

    assert (effective.record_validation, effective.producer_id_expiration_ms) == ("records", 5)


def test_properties_of_another_version_are_skipped() -> None:
    assert log_config(BrokerConfig.load().altered({"not.yet.known": "1"}), {"nor.this": "2"}) == LogConfig()


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact,delete"},
        {"cleanup.policy": "delete,delete"},
        {"preallocate": "TRUE"},
        {"retention.ms": " 5 "},
        {"retention.ms": "-1"},
        {"segment.bytes": "1000"},
        {"min.compaction.lag.ms": "10"},
        {"local.retention.ms": "100"},
        {"leader.replication.throttled.replicas": "*"},
        {"follower.replication.throttled.replicas": "0:1,1:2"},
    ],
)
def test_valid_topic_properties(overrides: dict[str, str | None]) -> None:
    validate(overrides)


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"foo": "1"}, "Unknown topic config name: foo"),
        ({"retention": "1"}, "did you mean retention.ms"),
        ({"log.retention.ms": "1"}, "a topic has retention.ms"),
        ({"message.format.version": "3.0"}, "Unknown topic config name: message.format.version"),
        (
            {"retention.ms": "abc"},
            "Invalid value abc for configuration retention.ms: Not a number of type LONG; write a",
        ),
        ({"retention.ms": "-2"}, "Value must be at least -1"),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"segment.bytes": "2147483648"}, "segment.bytes"),
        ({"cleanup.policy": "x"}, "String must be one of: compact, delete"),
        ({"compression.type": "none"}, "compression.type"),
        ({"compression.gzip.level": "0"}, "between 1 and 9 or equal to -1"),
        ({"compression.zstd.level": "23"}, "no more than 22"),
        ({"min.cleanable.dirty.ratio": "1.5"}, "no more than 1"),
        ({"preallocate": "yes"}, "true or false"),
        ({"min.insync.replicas": "0"}, "at least 1"),
        ({"leader.replication.throttled.replicas": "x"}, "[partitionId]:[brokerId]"),
        ({"remote.storage.enable": "true"}, "tiered storage"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "conflict topic config setting"),
    ],
)
def test_invalid_topic_properties(overrides: dict[str, str | None], part: str) -> None:
    with pytest.raises(KafkaError) as caught:
        validate(overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert part in caught.value.detail


def test_rules_between_properties_use_the_broker_wide_values() -> None:
    with pytest.raises(KafkaError, match="conflict topic config setting"):
        validate({"min.compaction.lag.ms": "10"}, LogConfig(max_compaction_lag_ms=5))
