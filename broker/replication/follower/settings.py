"""The properties of replication, with Kafka's names and defaults; times in milliseconds, sizes in bytes."""

from __future__ import annotations

from typing import NamedTuple


class FollowerSettings(NamedTuple):
    """The properties of the followers of one broker."""

    num_replica_fetchers: int = 1
    replica_fetch_backoff_ms: int = 1_000
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_min_bytes: int = 1
    replica_fetch_response_max_bytes: int = 10_485_760
    replica_fetch_wait_max_ms: int = 500
