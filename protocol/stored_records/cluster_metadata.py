"""Records of `__cluster_metadata`, the log that Kafka's controllers keep what topics there are in (KIP-631).

Each begins with a frame: its own version (1), record type and version of the message, as unsigned varints. Of some
thirty types these are the ones that say which topics there are and what is configured.
"""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, i8, message, nullable, string, uuid

FRAME_VERSION = 1
TOPIC_RESOURCE = 2
"""What `ConfigRecord.resource_type` says of a topic."""


@message(versions=(0, 0), flexible_since=0)
class TopicRecord(Message):
    """Record type 2, version 0, flexible: a topic was created."""

    name: string = ""
    topic_id: uuid = ZERO_UUID


@message(versions=(0, 0), flexible_since=0)
class ConfigRecord(Message):
    """Record type 4, version 0, flexible: a property was set, or, with a value of null, taken back."""

    resource_type: i8 = 0
    resource_name: string = ""
    name: string = ""
    value: Annotated[string | None, nullable(0)] = ""


@message(versions=(0, 0), flexible_since=0)
class RemoveTopicRecord(Message):
    """Record type 9, version 0, flexible: a topic was deleted, and its properties with it."""

    topic_id: uuid = ZERO_UUID


TOPIC, CONFIG, REMOVE_TOPIC = 2, 4, 9
"""Record types."""
