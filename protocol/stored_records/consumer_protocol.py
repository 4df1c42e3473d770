"""What members of a classic consumer group tell each other (JoinGroup, SyncGroup), behind an int16 of its version.

Brokers pass it on and store it unread. A reader takes a version above those that it knows for the last that it knows.
"""

from typing import Annotated

from protocol.schema import Message, Structure, binary, i32, message, since, string


class TopicPartition(Structure):
    topic: string = ""
    partitions: list[i32] = []


@message(versions=(0, 3))
class ConsumerProtocolSubscription(Message):
    """Versions 0–3: what a member wants.

    v1 adds what it owns (KIP-429), v2 the generation of that (KIP-792), v3 its rack (KIP-881).
    """

    topics: list[string] = []
    user_data: binary | None = None
    owned_partitions: Annotated[list[TopicPartition], since(1)] = []
    generation_id: Annotated[i32, since(2)] = -1
    rack_id: Annotated[string | None, since(3)] = None


@message(versions=(0, 3))
class ConsumerProtocolAssignment(Message):
    """Versions 0–3, all alike: what the leader of the group gives to a member."""

    assigned_partitions: list[TopicPartition] = []
    user_data: binary | None = None
