"""Records of `__cluster_metadata`, the metadata log of Kafka's controllers (KIP-631): topics and configs.

Each begins with a frame: its own version (1), record type and version of the message, as unsigned varints. The log has
some thirty types; these contain the topics and their configs.
"""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, i8, message, nullable, string, uuid

FRAME_VERSION = 1
TOPIC_RESOURCE = 2
"""`ConfigRecord.resource_type` of a topic."""


@message(versions=(0, 0), flexible_since=0)
class TopicRecord(Message):
    """Record type 2, version 0, flexible: a topic was created."""

    name: string = ""
    topic_id: uuid = ZERO_UUID


@message(versions=(0, 0), flexible_since=0)
class ConfigRecord(Message):
    """Record type 4, version 0, flexible: a property was set, or with a value of null deleted."""

    resource_type: i8 = 0
    resource_name: string = ""
    name: string = ""
    value: Annotated[string | None, nullable(0)] = ""


@message(versions=(0, 0), flexible_since=0)
class RemoveTopicRecord(Message):
    """Record type 9, version 0, flexible: a topic was deleted with its properties."""

    topic_id: uuid = ZERO_UUID


TOPIC, CONFIG, REMOVE_TOPIC = 2, 4, 9
"""Record types."""
