"""The loss of logs: a live broker takes its replicas without a log out of the in-sync sets.

```
log directory fails ─┐                      ISR without this broker, another member leads     (leadership.without)
log is missing at   ─┴─► report_losses ─►   it is the only member: no leader, and it cannot be elected
the start
```

The broker writes the changes itself, because only it has the list of its partitions in a directory. A controller then
elects from what the sets contain, and runs unclean elections where topics allow them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.leaders.leadership import without
from odradek.broker.metadata.leaders.state_changes import StateChange, transactions
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import created_at
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)


class LostReplica(NamedTuple):
    """A partition of which this broker has no log. `is_gone`: no failed directory can contain it either.

    `is_new`: the log was never on a disk of this broker for certain, and cannot come back.
    """

    topic_id: bytes
    partition_index: int
    is_gone: bool
    is_new: bool = False


async def report_losses(metadata: Metadata, lost: Iterable[LostReplica]) -> None:
    """Take this broker out of the in-sync sets of these partitions; return when the image has that.

    Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT; call it again then.
    """
    lost = tuple(lost)
    node_id = metadata.config.node_id
    while True:
        image, epoch = metadata.image, metadata.broker_epoch
        changes = list(_changes(metadata, image, epoch, lost))
        if not changes:
            return
        _LOG.error("logs lost, leaving the in-sync sets", count=len(changes), first=str(changes[0]))
        guard = created_at(metadata.keys.broker_id(node_id), epoch)
        is_done = True
        for transaction in transactions(metadata.keys, image.brokers, changes, guard):
            is_done = (await metadata.commit(transaction.when, transaction.then)).ok and is_done
        if is_done or metadata.broker_epoch != epoch:  # it registers anew, and reports them then
            return


def _changes(
    metadata: Metadata, image: MetadataImage, epoch: int, lost: Iterable[LostReplica]
) -> Iterator[StateChange]:
    node_id = metadata.config.node_id
    for topic_id, index, is_gone, is_new in lost:
        topic = image.topics_by_id.get(topic_id)
        partition = None if topic is None else topic.partition(index)
        if topic is None or partition is None:
            continue
        if node_id not in {*partition.isr, *partition.eligible_leader_replicas} and partition.leader != node_id:
            continue
        # The only replica, gone: its records are lost, and it may begin anew. Others may have more than an empty log,
        # but not if the last member of the ISR was killed, or lost power, right after the creation.
        lost_epoch = 0 if is_gone and (is_new or partition.replicas == [node_id]) else -epoch
        least = metadata.current_config.topic_log_config(topic).min_insync_replicas
        decision = without(partition, node_id, image.brokers, lost_epoch, min_insync=least)
        if decision is not None:
            yield StateChange(topic, index, decision)
