"""The bytes that a parked fetch could return: a running sum over its partitions.

An append counts the partition that it changes and no other, so that it costs the same however many partitions a fetch
wants. The bytes of a partition are the distance in its segment from the fetch offset to the end that the fetch may
read, at most `partition_max_bytes`. A fetch from an older segment than that of the end waits no longer, because more
bytes than the rest of its segment will never be in its answer. Kafka's `DelayedFetch` counts alike.

A count stays right between two calls: the end of a partition moves with an event that leads to a call, while another
leader or epoch, an offline disk and a deletion answer the fetch at once. A log start that moves above the fetch offset
is noticed by the next call.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.replication.partition import Partition
from odradek.broker.storage.segment import Segment
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.fetch import FetchPartition


class AvailableBytes:
    """See the module. `sizes` are the bytes by partition that the fetch found when it came, `total` is their sum."""

    def __init__(self, sizes: Mapping[Partition, int]) -> None:
        self._sizes = dict(sizes)
        self._starts: dict[Partition, tuple[Segment, int]] = {}
        self.total = sum(self._sizes.values())

    def count(self, partition: Partition, request: FetchPartition, end: int) -> bool:
        """Count the bytes of a partition again; return whether the fetch must not wait for more.

        `request` is the part of the fetch for this partition, which may be read up to `end` (exclusive).
        """
        log, offset = partition.log, request.fetch_offset
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return True
        size = 0
        if offset < end:
            try:
                start = self._starts.get(partition)
                if start is None:
                    start = self._starts[partition] = log.place_of(offset)
                segment, position = log.place_of(end)
            except KafkaError:
                return True
            if segment is not start[0]:
                return True
            size = max(0, min(position - start[1], request.partition_max_bytes))
        self.total += size - self._sizes.get(partition, 0)
        self._sizes[partition] = size
        return False
