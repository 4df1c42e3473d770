"""The replacement of a partition whose log was restored to an earlier state: by truncation, or by another log.

A partition and all that refers to it (delayed requests, a coordinator's writer) rely on offsets that never fall. So a
restored log gets a new partition, as at the start of a broker: its high watermark and its leader epoch begin at the end
of the log.
"""

from __future__ import annotations

from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.log import Log


def reopen(partitions: Partitions, partition: Partition, log: Log) -> None:
    """Put a new partition with this log in the place of `partition`, whose appends must have ended."""
    topic, image = partitions.image.topics_by_id[partition.topic_id], partition.image
    assert image is not None  # every registered partition has one
    partitions.on_removal(partition)
    partition.resign()
    partitions.release(partition)
    partitions.add(topic, partition.index, image, log)
