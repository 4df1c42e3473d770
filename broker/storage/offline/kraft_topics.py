"""The topics and their properties in the log of Apache Kafka's controller, `__cluster_metadata-0`.

A Kafka node that is broker and controller in one keeps this log beside those that it serves:

```
__cluster_metadata-0/
  00000000000000001234-0000000001.checkpoint   a snapshot: the sum of all records below offset 1234
  00000000000000000000.log …                   the records themselves, those of the snapshot perhaps deleted
```

Both are batches of the records that `odradek.protocol.stored_records.cluster_metadata` describes. This reads the latest
snapshot, and the log from its offset on, and changes nothing. The topics' own directories hold their names and ids;
only this log says that a topic is compacted, or kept for a year.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import msgspec

from odradek.broker.storage.batch_scan import CorruptBatchError, read_whole_batches
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.names import LOG_SUFFIX, RAFT_METADATA, partition_directory
from odradek.broker.storage.offline.listing import PartitionFiles
from odradek.protocol.codec import decode
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import read_batch_header
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.stored_records.cluster_metadata import (
    CONFIG,
    FRAME_VERSION,
    REMOVE_TOPIC,
    TOPIC,
    TOPIC_RESOURCE,
    ConfigRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.protocol.uvarint import uvarint_rest

_LOG = logging.getLogger(__name__)

_SNAPSHOT = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")


class KraftTopics(msgspec.Struct):
    """Topic ids by name, and properties by name; a topic without properties of its own is only in `ids`."""

    ids: dict[str, bytes] = {}
    configs: dict[str, dict[str, str]] = {}

    def take(self, value: bytes) -> None:
        """Apply one record. Raises RemoteProtocolError for a malformed one."""
        try:
            frame, at = _uvarint(value, 0)
            kind, at = _uvarint(value, at)
            version, at = _uvarint(value, at)
        except IndexError:
            raise RemoteProtocolError("a record of cluster metadata without a frame") from None
        if frame != FRAME_VERSION:
            raise RemoteProtocolError(f"frame version {frame} is unknown")
        if kind == TOPIC:
            topic = decode(TopicRecord, version, value, at)
            self.ids[topic.name] = topic.topic_id
        elif kind == REMOVE_TOPIC:
            self._remove(decode(RemoveTopicRecord, version, value, at).topic_id)
        elif kind == CONFIG:
            self._configure(decode(ConfigRecord, version, value, at))

    def _remove(self, topic_id: bytes) -> None:
        for name in [name for name, each in self.ids.items() if each == topic_id]:
            del self.ids[name]
            self.configs.pop(name, None)

    def _configure(self, config: ConfigRecord) -> None:
        if config.resource_type != TOPIC_RESOURCE:
            return
        configs = self.configs.setdefault(config.resource_name, {})
        if config.value is None:
            configs.pop(config.name, None)
        else:
            configs[config.name] = config.value


def read_kraft_topics(files: Files, log_dir: str) -> KraftTopics | None:
    """The topics in the metadata log in `log_dir`, up to the first damage; None if there is no such log."""
    name = partition_directory(RAFT_METADATA, 0)
    directory = f"{log_dir}/{name}"
    if not files.exists(directory):
        return None
    descriptors = DescriptorCache(files)
    topics = KraftTopics()
    try:
        for value in _values(descriptors, PartitionFiles(files, log_dir, name, (RAFT_METADATA, 0))):
            topics.take(value)
    except (CorruptBatchError, RemoteProtocolError, ValueError) as error:
        _LOG.warning("topics behind the damage in %s are not known: %s", directory, error)
    finally:
        descriptors.close()
    return topics


def _values(descriptors: DescriptorCache, log: PartitionFiles) -> Iterator[bytes]:
    snapshots = sorted(name for name in log.sizes if _SNAPSHOT.fullmatch(name))
    start_offset = 0
    if snapshots:
        start_offset = int(snapshots[-1].partition("-")[0])
        yield from _values_in(descriptors, f"{log.path}/{snapshots[-1]}", log.sizes[snapshots[-1]], 0)
    for base_offset in log.logs:
        path, size = log.path_of(base_offset, LOG_SUFFIX), log.segments[base_offset][LOG_SUFFIX]
        yield from _values_in(descriptors, path, size, start_offset)


def _values_in(descriptors: DescriptorCache, path: str, size: int, start_offset: int) -> Iterator[bytes]:
    for batch, data in read_whole_batches(descriptors, path, 0, size):
        header = read_batch_header(data)
        if batch.last_offset < start_offset or header.is_control:
            continue
        for record in iter_records(data, 0, header):
            if record.offset >= start_offset and record.value is not None:
                yield record.value


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    return (first, at + 1) if first < 128 else uvarint_rest(data, at + 1, first)
