"""A cluster with other brokers, as one broker sees it: images as the metadata store would publish them."""

from __future__ import annotations

from typing import Any

import msgspec

from odradek.broker.broker import Broker
from odradek.broker.metadata.image import BrokerImage, ImageChange, PartitionImage
from odradek.broker.metadata.values import RUNNING, Listener

SELF, OTHER = 1, 2
OTHER_BROKER = BrokerImage(OTHER, 9, [Listener("PLAINTEXT", "PLAINTEXT", "other", 9093)], "south", RUNNING, "x", 9)


def publish(broker: Broker, topic: str, **state: Any) -> None:
    """Publish an image with another broker in it, and with the topic's partition 0 changed; its epochs grow."""
    metadata = broker.services.metadata
    image, old = metadata.image, metadata.image.topics[topic]
    before = old.partitions[0]
    epochs = {"leader_epoch": before.leader_epoch + ("leader" in state), "partition_epoch": before.partition_epoch + 1}
    partition: PartitionImage = msgspec.structs.replace(before, replicas=[SELF, OTHER], **epochs, **state)
    new = msgspec.structs.replace(old, partitions=[partition, *old.partitions[1:]])
    # Not through the metadata store: its controller would correct the image.
    metadata.image = msgspec.structs.replace(
        image,
        topics={**image.topics, topic: new},
        topics_by_id={**image.topics_by_id, new.topic_id: new},
        brokers={**image.brokers, OTHER: OTHER_BROKER},
        registered={**image.registered, OTHER: OTHER_BROKER},
    )
    metadata.notify(ImageChange(image, metadata.image, {new.topic_id}))
