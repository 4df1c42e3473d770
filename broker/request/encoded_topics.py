"""The encoded topics of Metadata responses: each row is encoded once, and kept while it holds.

A row depends on its topic in the image, on the brokers that serve, on the listener of the client and on the version.

| the change | drops |
|---|---|
| a topic is created, deleted, or altered in any way | its rows |
| a broker begins or ends to serve, or registers again | all rows |
| the rows would exceed `MOST_BYTES` | all rows, also if a client asks for topics in all versions to fill the memory |

A row is returned only for the very object in the image that it was encoded from. So a request that is paused while the
image changes gets rows of its own image, and keeps none in place of a newer one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from odradek.broker.metadata.image import ImageChange, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.request.time_slices import Steps
from odradek.protocol.codec import PartEncoder
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from odradek.protocol.schema import EncodedPart

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of all rows together: some 400,000 partitions. A row of one partition has 70 bytes, each further one about 30."""

_OBJECTS_BYTES: Final = 300  # of the objects around the bytes of a row


class EncodedTopics:
    """The rows of one broker, which `metadata` keeps up to date."""

    def __init__(self, metadata: Metadata, most_bytes: int = MOST_BYTES) -> None:
        self._metadata = metadata
        self._most_bytes = most_bytes
        self._bytes = 0
        self._rows: dict[tuple[int, str], TopicRows] = {}
        metadata.on_change(self._image_changed)

    @property
    def size(self) -> int:
        """The bytes of all rows, with the objects around them."""
        return self._bytes

    def rows(self, version: int, listener_name: str) -> TopicRows:
        """Return the rows for clients of a listener, of the present image and of later ones with the same brokers."""
        found = self._rows.get((version, listener_name))
        if found is None:
            found = self._rows[version, listener_name] = TopicRows(self, version)
        return found

    def admit(self, topic: TopicImage, size: int) -> bool:
        """Return whether a row of `size` bytes may be kept, and count it. All others are dropped if it has no room."""
        if self._metadata.image.topics_by_id.get(topic.topic_id) is not topic:
            return False
        if self._bytes + size > self._most_bytes:
            self._clear()
            return False
        self._bytes += size
        return True

    def _image_changed(self, change: ImageChange) -> None:
        if change.before.brokers != change.after.brokers:
            self._clear()
            return
        for rows in self._rows.values():
            self._bytes -= rows.drop(change.topic_ids)

    def _clear(self) -> None:
        for rows in self._rows.values():
            rows.is_current = False
        self._rows = {}
        self._bytes = 0


class TopicRows:
    """The rows of one version for the clients of one listener. They keep no more of them once `is_current` is false."""

    __slots__ = ("_encoder", "_owner", "_rows", "is_current")

    def __init__(self, owner: EncodedTopics, version: int) -> None:
        self._owner = owner
        self._encoder = PartEncoder(MetadataResponseTopic, MetadataResponse, version)
        self._rows: dict[bytes, tuple[TopicImage, EncodedPart]] = {}
        self.is_current = True

    def get(self, topic: TopicImage) -> EncodedPart | None:
        """Return the row of a topic, or None if it must be encoded."""
        kept = self._rows.get(topic.topic_id)
        return kept[1] if kept is not None and kept[0] is topic else None

    def encode(self, topic: TopicImage, row: MetadataResponseTopic) -> Steps[EncodedPart]:
        """Return the encoded row of a topic, and keep it. Raises ENCODING_ERRORS."""
        encoded = yield from self._encoder.encode_in_steps(row)
        # A request that was paused at the same topic may have been faster.
        if self.get(topic) is None and self.is_current and self._owner.admit(topic, _size(encoded)):
            self._rows[topic.topic_id] = topic, encoded
        return encoded

    def drop(self, topic_ids: Collection[bytes]) -> int:
        """Drop the rows of topics; return their bytes."""
        dropped = [self._rows.pop(topic_id, None) for topic_id in topic_ids]
        return sum(_size(kept[1]) for kept in dropped if kept is not None)


def _size(row: EncodedPart) -> int:
    return len(row.content) + _OBJECTS_BYTES
