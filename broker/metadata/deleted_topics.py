"""The records of deleted topics: only with one may a broker delete the logs of a topic that it does not find any more.

```
delete topic ─► one transaction: its keys deleted, /topics/deleted/<topic id> put ─► every broker deletes its logs of it
7 days later ─► the controller deletes the record
```

So an emptied or restored store deletes no data: a topic that is merely gone is not served, and its files stay. A broker
that was down when a topic was deleted deletes its logs when it returns, if it returns within the seven days.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import MAX_OPERATIONS, Delete, Put, created_at
from odradek.broker.metadata.values import DeletedTopic, encode

KEPT_MS: Final = 7 * 24 * 60 * 60 * 1000
"""The time for which a record is kept."""
SWEEP_INTERVAL_MS: Final = 60 * 60 * 1000


def deletion_record(metadata: Metadata, topic: TopicImage) -> Put:
    """Return the operation that belongs into the transaction in which the topic is deleted."""
    return Put(metadata.keys.topic_deleted(topic.topic_id), encode(DeletedTopic(topic.name, metadata.clock.time_ms())))


async def sweep(metadata: Metadata) -> None:
    """Delete the records whose time is over, if this broker is the controller.

    Raises `KafkaError` KAFKA_STORAGE_ERROR.
    """
    image = metadata.image
    if image.controller_id != metadata.config.node_id:
        return
    oldest = metadata.clock.time_ms() - KEPT_MS
    expired = (topic_id for topic_id, record in image.deleted.items() if record.deleted_ms <= oldest)
    when = (created_at(metadata.keys.controller, image.controller_epoch),)
    while batch := tuple(Delete(metadata.keys.topic_deleted(each)) for each in islice(expired, MAX_OPERATIONS)):
        if not (await metadata.commit(when, batch)).ok:
            return  # another broker is the controller now
