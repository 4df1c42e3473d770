"""Subscriptions and assignments in classic consumer groups, as members exchange them in JoinGroup and SyncGroup.

```
version   int16    of the message; newer ones are decoded as the last one known, because they only append fields
message            a subscription or an assignment
```
Brokers forward and store them as bytes. They decode them to find the topics whose offsets must not expire, and for
groups with members of both protocols.
"""

import struct
from typing import Annotated, Final, TypeVar

from odradek.protocol.buffer import Buffer
from odradek.protocol.codec import decode, encode_into
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.schema import Message, Structure, binary, i32, message, since, string

_VERSION: Final = struct.Struct(">h")
_LAST_VERSION: Final = 3


class TopicPartition(Structure):
    topic: string = ""
    partitions: list[i32] = []


@message(versions=(0, _LAST_VERSION))
class ConsumerProtocolSubscription(Message):
    """Versions 0–3: the subscription of a member.

    v1 adds the partitions that it owns (KIP-429), v2 the generation of these (KIP-792), v3 its rack (KIP-881).
    """

    topics: list[string] = []
    user_data: binary | None = None
    owned_partitions: Annotated[list[TopicPartition], since(1)] = []
    generation_id: Annotated[i32, since(2)] = -1
    rack_id: Annotated[string | None, since(3)] = None


@message(versions=(0, _LAST_VERSION))
class ConsumerProtocolAssignment(Message):
    """Versions 0–3, with the same fields: the assignment of a member, from the group's leader."""

    assigned_partitions: list[TopicPartition] = []
    user_data: binary | None = None


M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def write_consumer_protocol(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """Encode a message with its version. Raises LocalProtocolError."""
    data = bytearray(_VERSION.pack(version))
    encode_into(message, version, data)
    return bytes(data)


def read_consumer_protocol(kind: type[M], data: Buffer) -> M:
    """Decode the message in `data`. Raises RemoteProtocolError, also for no bytes."""
    return decode(kind, read_version(data), data, _VERSION.size)


def read_version(data: Buffer) -> int:
    """Return the version to decode the message in `data` with. Raises RemoteProtocolError."""
    if len(data) < _VERSION.size:
        raise RemoteProtocolError("no version of the consumer protocol")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise RemoteProtocolError(f"version {version} of the consumer protocol")
    return min(int(version), _LAST_VERSION)
