"""The committed offsets of groups in `__consumer_offsets`.

`odradek.protocol.stored_records.offset_commit` draws the records. The last record of a group, topic and partition
counts; one without a value deletes the offset. Commits inside a transaction count once it is committed, in the order of
their records, as in Kafka's `OffsetMetadataManager`. Records of other types are skipped; so are malformed ones and
those of unknown versions, with a warning in the log.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable
from typing import NamedTuple

from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.offline.stored_partition import StoredPartition
from odradek.protocol.codec import decode
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.record_iterator import Record
from odradek.protocol.schema import spec
from odradek.protocol.stored_records.offset_commit import OffsetCommitKey, OffsetCommitValue

_LOG = logging.getLogger(__name__)

_TYPE = struct.Struct(">h")
_COMMITS = (0, 1)  # record types; the messages of the older one are laid out like the first version of the other


class CommittedOffset(NamedTuple):
    """The next offset that a group reads; `leader_epoch` is -1 if unknown. The time is in milliseconds."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int


def read_committed_offsets(partitions: Iterable[StoredPartition]) -> dict[str, dict[Partition, CommittedOffset]]:
    """The committed offsets in the partitions of `__consumer_offsets`, by group; groups without any are omitted."""
    found: dict[str, dict[Partition, CommittedOffset]] = {}
    for partition in partitions:
        for record in partition.records(decided_only=True):
            try:
                _take(found, record)
            except (RemoteProtocolError, struct.error) as error:
                _LOG.warning(
                    "%s-%d: leaving offset %d out: %s", partition.topic, partition.partition, record.offset, error
                )
    return {group: offsets for group, offsets in sorted(found.items()) if offsets}


def _take(found: dict[str, dict[Partition, CommittedOffset]], record: Record) -> None:
    if record.key is None or _TYPE.unpack_from(record.key)[0] not in _COMMITS:
        return
    key = decode(OffsetCommitKey, 0, record.key, _TYPE.size)
    offsets = found.setdefault(key.group, {})
    if record.value is None:
        offsets.pop((key.topic, key.partition), None)
        return
    (version,) = _TYPE.unpack_from(record.value)
    known = spec(OffsetCommitValue)
    if not known.first_version <= version <= known.last_version:
        raise RemoteProtocolError(f"version {version} of an offset commit is unknown")
    value = decode(OffsetCommitValue, version, record.value, _TYPE.size)
    offsets[key.topic, key.partition] = CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp
    )
