"""Encoded elements of arrays: the bytes and error counts are those of the structures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import codec
from odradek.protocol.code_generation.error_counts import error_counter
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.schema import EncodedPart, layout
from tests.effort import examples
from tests.protocol.test_codec import structures

VERSIONS = range(14)


def finished(steps: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def encoded(topic: MetadataResponseTopic, version: int) -> EncodedPart:
    part: EncodedPart = finished(
        codec.PartEncoder(MetadataResponseTopic, MetadataResponse, version).encode_in_steps(topic)
    )
    return part


def partly_encoded(message: MetadataResponse, version: int) -> MetadataResponse:
    """Return the message with every other topic encoded."""
    topics: list[Any] = list(message.topics)
    topics[::2] = [encoded(topic, version) for topic in topics[::2]]
    return MetadataResponse(
        message.throttle_time_ms,
        message.brokers,
        message.cluster_id,
        message.controller_id,
        topics,
        message.cluster_authorized_operations,
        message.error_code,
    )


def counted(message: MetadataResponse, version: int) -> dict[int, int]:
    counts: defaultdict[int, int] = defaultdict(int)
    error_counter(MetadataResponse, version)(message, counts)
    return dict(counts)


@pytest.mark.parametrize("version", VERSIONS)
@examples(20)
@given(data=st.data())
def test_encoded_parts_are_sent_and_counted_like_structures(version: int, data: st.DataObject) -> None:
    message = data.draw(structures(layout(MetadataResponse, version)))
    mixed = partly_encoded(message, version)

    expected = codec.encode(message, version)
    in_steps = bytearray()
    finished(codec.encoder_in_steps(MetadataResponse, version)(mixed, in_steps, []))
    assert codec.encode(mixed, version) == in_steps == expected
    assert counted(mixed, version) == counted(message, version)
    assert codec.with_decoded_parts(mixed) == message


def test_a_large_part_is_encoded_in_steps() -> None:
    topic = MetadataResponseTopic(partitions=[MetadataResponsePartition(replica_nodes=[1, 2, 3])] * 1000)

    steps = list(codec.PartEncoder(MetadataResponseTopic, MetadataResponse, 12).encode_in_steps(topic))

    assert len(steps) > 5


def test_a_message_without_encoded_parts_is_returned_as_it_is() -> None:
    topics = [MetadataResponseTopic(name="t")]

    assert codec.with_decoded_parts(MetadataResponse(topics=topics)).topics == topics
