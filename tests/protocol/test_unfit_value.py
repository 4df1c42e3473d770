"""The error for a value that a message cannot carry names the field, the value and what it may be."""

from __future__ import annotations

from typing import Any, cast

import pytest

from odradek.protocol import codec
from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.schema import Message


def _created(**of_topic: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic("a"), CreatableTopic(**{"name": "b", **of_topic})], 1000)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (
            _created(num_partitions=1 << 31),
            "topics[1].num_partitions = 2147483648: it is an int32, -2147483648 to 21",
        ),
        (_created(num_partitions=-(1 << 31) - 1), "topics[1].num_partitions = -2147483649: it is an int32"),
        (_created(replication_factor=1 << 15), "replication_factor = 32768: it is an int16, -32768 to 32767"),
        (_created(replication_factor=1 << 80), "replication_factor = 1208925819614629174706176: it is an int16"),
        (_created(replication_factor=1 << 20_000), "replication_factor = an integer of 20001 bits: it is an int16"),
        (_created(name=b"n" * 1_000), f"topics[1].name = b'{'n' * 58}…: it is a string"),
        (_created(configs=[["c"] * 1_000]), f"configs[0] = {str(['c'] * 61)[:60]}…: it is a CreatableTopicConfig"),
        (_created(num_partitions="3"), "topics[1].num_partitions = '3': it is an int32"),
        (_created(name="\ud800"), r"topics[1].name = '\ud800': it is UTF-8, and the character 0 is not"),
        (_created(name=3), "topics[1].name = 3: it is a string"),
        (
            _created(configs=[CreatableTopicConfig("c", cast("Any", 1))]),
            "configs[0].value = 1: it is a string",
        ),
        (_created(configs=7), "topics[1].configs = 7: it is a list"),
        (_created(configs=["c"]), "topics[1].configs[0] = 'c': it is a CreatableTopicConfig"),
        (
            FetchRequest(topics=[FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(fetch_offset=1 << 63)])]),
            "topics[0].partitions[0].fetch_offset = 9223372036854775808: it is an int64",
        ),
        (FetchRequest(max_wait_ms=1 << 31), "FetchRequest v16 cannot carry max_wait_ms = 2147483648"),
    ],
)
def test_the_error_names_the_field_and_what_it_may_be(message: Message, complaint: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        codec.encode(message, 16 if isinstance(message, FetchRequest) else 7)
    assert complaint in str(caught.value)
    assert "format requires" not in str(caught.value)
