"""Requests for reassignments (KIP-455): checked, begun or cancelled, by any broker; `reassignment` has the steps.

Workers of one host fail together, so a host gets no second replica of a partition. If it has several already
(`workers.count.as.brokers` was set), a reassignment may keep as many as there are, but not add to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from odradek.broker.metadata.administration.placement import ONE_HOST, sharing
from odradek.broker.metadata.image import MetadataImage, PartitionImage
from odradek.broker.metadata.leaders.reassignment import begin, invalid, is_running, revert
from odradek.broker.metadata.leaders.requested_changes import change_on_request
from odradek.broker.metadata.leaders.state_changes import StateChange
from odradek.broker.metadata.metadata import Metadata
from odradek.protocol.errors import ErrorCode, KafkaError


class WantedReplicas(NamedTuple):
    """The replicas that a partition shall have; None: those that it had before the present reassignment."""

    topic: str
    partition_index: int
    replicas: Sequence[int] | None


async def reassign(
    metadata: Metadata,
    wanted: Sequence[WantedReplicas],
    *,
    changes_factor: bool,
) -> list[KafkaError | None]:
    """Begin these reassignments, or cancel them; return the error of each, or None, when the image has them.

    `changes_factor`: whether the number of replicas may change (KIP-860). The errors: UNKNOWN_TOPIC_OR_PARTITION,
    NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR. Raises `KafkaError`
    KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT.
    """
    return await change_on_request(metadata, wanted, partial(_decide, metadata, changes_factor))


def _decide(
    metadata: Metadata, changes_factor: bool, image: MetadataImage, wanted: WantedReplicas
) -> StateChange | None:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}.")
    partition = topic.partition(wanted.partition_index)
    if partition is None:
        name = f"{wanted.topic}:{wanted.partition_index}"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}.")
    config = metadata.current_config.topic_log_config(topic)
    least, unclean = config.min_insync_replicas, config.unclean_leader_election_enable
    if wanted.replicas is None:
        decision = revert(partition, image.brokers, min_insync=least, unclean=unclean)
    else:
        _check(image, partition, wanted.replicas, changes_factor)
        if not metadata.config.workers_count_as_brokers:
            _check_hosts(image, partition, wanted.replicas)
        if list(wanted.replicas) == partition.replicas and not is_running(partition):
            return None
        decision = begin(partition, wanted.replicas, image.brokers, min_insync=least)
    return StateChange(topic, wanted.partition_index, decision)


def _check(image: MetadataImage, partition: PartitionImage, replicas: Sequence[int], changes_factor: bool) -> None:
    """Raise `KafkaError` if a partition cannot have these replicas. The texts are Kafka's."""
    if not replicas:
        raise invalid("The manual partition assignment includes an empty replica list.")
    for node_id in sorted(replicas):
        if node_id not in image.registered and node_id not in image.known:
            raise invalid(
                f"The manual partition assignment includes broker {node_id}, but no such broker is registered."
            )
        if replicas.count(node_id) > 1:
            raise invalid(f"The manual partition assignment includes the broker {node_id} more than once.")
    factor = len(set(partition.replicas) - set(partition.removing_replicas))
    if len(replicas) != factor and not changes_factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(replicas)}",
        )


def _check_hosts(image: MetadataImage, partition: PartitionImage, replicas: Sequence[int]) -> None:
    """Raise `KafkaError` if more of these replicas share a host than of those from before a reassignment."""
    present = [each for each in partition.replicas if each not in partition.adding_replicas]
    hosts = {node_id: host for node_id in (*present, *replicas) if (host := image.host_of(node_id))}
    if sharing(replicas, hosts) > sharing(present, hosts):
        raise invalid(f"The manual partition assignment includes brokers {sorted(replicas)}: {ONE_HOST}.")
