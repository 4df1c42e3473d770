"""The offset at which a follower's log diverges from its leader's.

The leader answers a fetch whose last epoch it does not have, or has with an earlier end, with the largest epoch that it
has up to that one, and that epoch's end (KIP-595). The follower looks for the same epoch in its own log:

| own log | truncated to | then |
|---|---|---|
| has the epoch | the smaller one of both ends | the logs agree up to there |
| has only earlier epochs | the end of the latest of them | the next fetch names that epoch (KIP-279) |
| has no epochs up to it | the leader's end | the logs agree up to there |

Never to the high watermark: it may be behind at a follower, which would then truncate committed records and could be
elected before it has them again (KIP-101). Kafka's `AbstractFetcherThread.getOffsetTruncationState`.
"""

from __future__ import annotations

from odradek.broker.storage.log import Log


def truncation_offset(log: Log, diverging_epoch: int, end_offset: int) -> int:
    """The end (exclusive) of what `log` may keep, if the leader's log diverges after `end_offset` of an epoch."""
    own_epoch, own_end = log.end_offset_for_epoch(diverging_epoch)
    if own_epoch < 0:
        return min(end_offset, log.log_end_offset)
    if own_epoch == diverging_epoch:
        return min(end_offset, own_end, log.log_end_offset)
    return min(own_end, log.log_end_offset)
