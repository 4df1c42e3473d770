"""Whose offset commits and reads count: those of members, by their epoch.

| who | commits if | reads if |
|---|---|---|
| somebody outside (epoch below 0) | the group is empty | it names no member |
| a member in its epoch | always | always |
| a member with an epoch that it has left | each partition was its own since then, or before (KIP-1251) | never |
| a member with an epoch to come | never | never |

An older epoch is no mistake: the answer with the newer one may be under way. The epoch at which a partition was given
to its owner tells such a commit from that of somebody who lost the partition since. Members of the classic protocol
are refused with ILLEGAL_GENERATION, others with STALE_MEMBER_EPOCH. Source: Kafka's
`ConsumerGroup.validateOffsetCommit`.
"""

from __future__ import annotations

from collections.abc import Collection

from odradek.broker.coordinator.consumer_group import checks
from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError

_FIRST_VERSION_WITH_MEMBER_EPOCHS = 9


def check_commit(
    state: GroupState, committer: Committer, partitions: Collection[tuple[str, int]], image: MetadataImage
) -> None:
    """Raises UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION."""
    epoch = committer.generation_id
    if epoch < 0 and not state.members:
        return
    if committer.is_transactional and epoch == -1 and not committer.member_id and committer.group_instance_id is None:
        return
    member = checks.known_member(state, committer.member_id)
    is_classic = member.classic is not None
    if not committer.is_transactional and not is_classic and committer.api_version < _FIRST_VERSION_WITH_MEMBER_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"OffsetCommit version {_FIRST_VERSION_WITH_MEMBER_EPOCHS} or above must be used by members using the "
            "consumer group protocol",
        )
    if epoch > member.member_epoch:
        raise _stale(
            member, f"Received {_epoch_word(member)} {epoch} is newer than current member epoch {member.member_epoch}."
        )
    if epoch < member.member_epoch:
        for topic, partition in partitions:
            _check_given_by(member, epoch, topic, partition, image)


def check_fetch(state: GroupState, member_id: str | None, epoch: int) -> None:
    """Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION."""
    if member_id is None and epoch < 0:
        return
    member = checks.known_member(state, member_id or "")
    if epoch != member.member_epoch:
        raise _stale(
            member,
            f"The received {_epoch_word(member)} {epoch} does not match the expected member epoch "
            f"{member.member_epoch}.",
        )


def _check_given_by(member: ConsumerMember, epoch: int, topic: str, partition: int, image: MetadataImage) -> None:
    topic_id = image.topics[topic].topic_id if topic in image.topics else b""
    given = member.assigned.get(topic_id, {}).get(partition)
    if given is None:
        given = member.pending_revocation.get(topic_id, {}).get(partition)
    if given is None:
        raise _stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
    if epoch < given:
        raise _stale(
            member,
            f"Received {_epoch_word(member)} {epoch} is older than assignment epoch {given} for partition "
            f"{topic}-{partition}.",
        )


def _epoch_word(member: ConsumerMember) -> str:
    return "member epoch" if member.classic is None else "generation id"


def _stale(member: ConsumerMember, detail: str) -> KafkaError:
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return KafkaError(code, detail)
