from __future__ import annotations

from odradek.client.record import TopicPartition
from odradek.pipeline.options.bounds import offsets_from_json, offsets_json


def test_offsets_are_written_as_the_connector_writes_them() -> None:
    offsets = {TopicPartition("t", 0): 5, TopicPartition("t", 10): 7, TopicPartition("u", 0): 0}
    assert offsets_json(offsets) == '{"t": {"0": 5, "10": 7}, "u": {"0": 0}}'
    assert offsets_from_json(offsets_json(offsets)) == offsets
