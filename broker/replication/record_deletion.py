"""The deletion of the oldest records of a partition, for DeleteRecords (KIP-107).

```
delete_records ─► log start offset of the leader ─► the responses to the followers have it ─► theirs follow
                                                                                               │
low_watermark ◄─ the smallest of them ◄─ replica states ◄─ their next fetches have it ◄────────┘
```

A replica that is down counts no more: it follows the leader's log start when it returns.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.replication.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError

UP_TO_HIGH_WATERMARK: Final = -1


async def delete_records(partition: Partition, offset: int) -> int:
    """Raise the log start offset to `offset`, -1 for the high watermark; return the offset that -1 stands for.

    Raises KafkaError OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION for a topic that is compacted
    only, and those of `Partition.check_serving`.
    """
    partition.check_serving()
    log = partition.log
    if log.config.cleanup_policy == {"compact"}:
        # Any record of a compacted log may be the last of its key.
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"the cleanup.policy of {partition.topic} is compact, without delete"
        )
    if offset == UP_TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"there is no offset {offset}")
    await partition.appender.run_between_appends(log.update_log_start_offset, offset)
    return offset


def low_watermark(partition: Partition) -> int:
    """Return the smallest log start offset of all live replicas; -1 if one of them has not fetched in this epoch.

    Raises KafkaError as `Partition.check_serving`.
    """
    partition.check_serving()
    return partition.followers.low_watermark(partition.log.log_start_offset)
