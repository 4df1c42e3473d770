from __future__ import annotations

import pytest

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import Fallback, LogProperty, Property, Table, TopicDefault
from odradek.broker.config.types import INT, LIST, LONG, PASSWORD, InvalidValueError
from odradek.broker.storage.log_config import LogConfig


class Sample(Table):
    some_size = TopicDefault("some.size", INT, LogConfig.segment_bytes, at_least(1), doc="A size.")
    some_age = TopicDefault(
        "some.age",
        LONG,
        LogConfig.retention_ms,
        topic_bound=at_least(5),
        fallback=(Fallback("some.hours"),),
        doc="An age.",
        differs="there 2.",
    )
    some_policy = LogProperty("some.policy", LIST, LogConfig.cleanup_policy, doc="A policy.")
    some_secret = Property("some.secret", PASSWORD, None, doc="A secret.", differs="It is another one.")


def test_the_rows_of_a_table_are_in_order() -> None:
    assert list(Sample.properties()) == ["some.size", "some.age", "some.policy", "some.secret"]


def test_a_row_has_the_name_of_its_attribute() -> None:
    with pytest.raises((TypeError, RuntimeError)):
        type("Wrong", (Table,), {"other": Property("some.size", INT, 1, doc="A size.")})


def test_the_attribute_of_the_class_is_the_row_and_that_of_an_instance_the_value() -> None:
    assert Sample.some_size.name == "some.size"
    with pytest.raises(AttributeError, match=r"some.size is not loaded"):
        _ = Sample().some_size


def test_the_topic_bound_is_the_broker_bound_unless_another_is_given() -> None:
    assert (Sample.some_size.topic, str(Sample.some_size.topic_bound)) == ("segment.bytes", "[1,...]")
    assert (Sample.some_age.topic, str(Sample.some_age.topic_bound)) == ("retention.ms", "[5,...]")
    assert Sample.some_age.parse("-3") == -3
    with pytest.raises(InvalidValueError):
        Sample.some_size.parse("0")


def test_a_log_property_has_the_default_of_the_field_unless_it_has_fallbacks() -> None:
    assert Sample.some_size.default == 1 << 30
    assert Sample.some_age.default is None
    assert Sample.some_policy.default == ["delete"]


def test_a_log_property_may_have_no_topic_property() -> None:
    assert (Sample.some_policy.topic, Sample.some_policy.log_field) == (None, "cleanup_policy")


def test_passwords_are_sensitive() -> None:
    assert [row.sensitive for row in Sample.properties().values()] == [False, False, False, True]


def test_a_difference_is_part_of_the_documentation() -> None:
    assert Sample.some_size.documentation == "A size."
    assert Sample.some_age.documentation == "An age. Differs from Kafka: there 2."
