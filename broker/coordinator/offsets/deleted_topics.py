"""Which committed offsets are of a deleted topic, by the topic ids in them.

The coordinator deletes the offsets of a topic by name when it sees the deletion. It may be down then, or still loading,
or the log may refuse the tombstones; then the offsets stay until it has loaded, or until offsets expire the next time.
A topic that is made again under the name must not inherit them meanwhile, so OffsetFetch compares the ids, too.

Offsets without an id are those of clients before OffsetCommit 5, and of Apache Kafka before 4.1. They go with the name:
if a topic of that name was deleted, and there is none.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.metadata.image import MetadataImage, TopicImage
from odradek.protocol.schema import ZERO_UUID

OfDeleted = Callable[[str, CommittedOffset], bool]
"""Whether an offset, committed for a topic of that name, is of a deleted topic."""


def is_of_older(commit: CommittedOffset, topic: TopicImage | None) -> bool:
    """Return whether an offset was committed for an older topic of the name than the living one, if there is one."""
    return topic is not None and ZERO_UUID != commit.topic_id != topic.topic_id


def of_deleted(image: MetadataImage) -> OfDeleted:
    """Return the function that decides by an image."""
    topics, deleted = image.topics, image.deleted
    names = {record.name for record in deleted.values()} - topics.keys()

    def is_of_deleted(name: str, commit: CommittedOffset) -> bool:
        return commit.topic_id in deleted or name in names or is_of_older(commit, topics.get(name))

    return is_of_deleted
