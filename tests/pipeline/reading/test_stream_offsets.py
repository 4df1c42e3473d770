"""The offsets of a stream in its checkpoint, in the form that Spark's connector reads."""

from __future__ import annotations

from odradek.client.record import TopicPartition
from odradek.pipeline.reading.stream_offsets import StreamOffsets

NUMBERS = {TopicPartition("b", 0): 7, TopicPartition("a", 10): 12, TopicPartition("a", 2): 3}
IDS = {"b": "idB_-0123456789abcdefg", "a": "idA_-0123456789abcdefg"}
JSON = {"a": {"2": 3, "10": 12}, "b": {"0": 7}, "a:idA_-0123456789abcdefg": {}, "b:idB_-0123456789abcdefg": {}}


def test_ids_are_topics_without_partitions_in_a_fixed_order() -> None:
    assert list(StreamOffsets(NUMBERS, IDS).to_json().items()) == list(JSON.items())
    assert StreamOffsets.from_json(JSON) == StreamOffsets(NUMBERS, IDS)


def test_offsets_of_the_connector_have_no_ids() -> None:
    given = {"a": {"2": 3}}
    assert StreamOffsets.from_json(given) == StreamOffsets({TopicPartition("a", 2): 3}, {})
    assert StreamOffsets({TopicPartition("a", 2): 3}, {"gone": "id"}).to_json() == given


def test_only_another_id_of_the_same_topic_means_that_it_was_recreated() -> None:
    known = StreamOffsets(NUMBERS, IDS)
    assert known.recreated(known._replace(topic_ids=IDS | {"b": "other", "c": "new"})) == ["b"]
    assert known.recreated(known._replace(topic_ids={})) == []
    assert known._replace(topic_ids={}).recreated(known) == []
    assert known.without(["a"]) == StreamOffsets({TopicPartition("b", 0): 7}, {"b": IDS["b"]})
