"""Elections that an administrator asks for (KIP-183, KIP-460), by any broker; the controller holds all others."""

from __future__ import annotations

from broker.metadata.leadership import NO_LEADER, choose_unclean, prefer
from broker.metadata.metadata import Metadata
from broker.metadata.store import Put, still
from broker.metadata.topics import find_partition
from broker.metadata.values import encode
from protocol.errors import ErrorCode, KafkaError


async def elect_preferred(metadata: Metadata, topic: str, index: int) -> None:
    """Let the replica lead that is the first as assigned.

    Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED if it does already,
    PREFERRED_LEADER_NOT_AVAILABLE if it is not in sync or not there, KAFKA_STORAGE_ERROR.
    """
    await _elect(metadata, topic, index, unclean=False)


async def elect_unclean(metadata: Metadata, topic: str, index: int) -> None:
    """Let a live replica lead where nobody does, although records may be lost.

    Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED if somebody leads,
    ELIGIBLE_LEADERS_NOT_AVAILABLE if no replica is there, KAFKA_STORAGE_ERROR.
    """
    await _elect(metadata, topic, index, unclean=True)


async def _elect(metadata: Metadata, name: str, index: int, *, unclean: bool) -> None:
    while True:
        image = metadata.image
        partition = find_partition(image, name, index)
        if partition.leader != NO_LEADER if unclean else partition.leader == partition.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{index} is led by {partition.leader}")
        state = choose_unclean(partition, image.brokers) if unclean else prefer(partition, image.brokers)
        if state is None:
            code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            raise KafkaError(code, f"of the replicas {partition.replicas} of {name}-{index} none can lead now")
        key = metadata.keys.partition_state(image.topics[name].topic_id, index)
        put = Put(key, encode(state, partition.state_value))
        if (await metadata.commit((still(key, partition.state_revision),), (put,))).ok:
            return
