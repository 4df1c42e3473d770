"""The leader's view of one follower in one leader epoch: how far it has fetched, and when it was last caught up.

```
leader's end   100          100        140          140                  200
fetch at       80            100        120          140                  170
caught up?     no            now        at the time  now                  at the time
                                        of fetch 2                        of fetch 4
```

A fetch offset is the follower's log end offset: it has appended everything below. If it is at the leader's end, the
follower is caught up now. If it is at the end that the leader had at the previous fetch, the follower was caught up at
that time: under a steady load it never reaches the present end, but is not behind. Kafka's `Replica`.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
NEVER = float("-inf")


class ReplicaState:
    """One follower. `broker_epoch` is that of the last fetch that counted.

    Times are in seconds, `answered_at` and `sent_after` on the boot clock, all others on the monotonic one.
    `answered_at`: when records for the last answer to it were read. `sent_after`: a time before the follower sent
    its last fetch, because it sends one after the answer to the one before.
    """

    __slots__ = (
        "_last_fetch_leader_end",
        "_last_fetch_time",
        "answered_at",
        "broker_epoch",
        "last_caught_up_time",
        "log_end_offset",
        "log_start_offset",
        "sent_after",
    )

    def __init__(self, last_caught_up_time: float = NEVER) -> None:
        """Create the state at the begin of an epoch: a member of the ISR counts as caught up then."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_EPOCH
        self.answered_at = NEVER
        self.sent_after = NEVER
        self.last_caught_up_time = last_caught_up_time
        self._last_fetch_leader_end = UNKNOWN_OFFSET
        self._last_fetch_time = NEVER

    def __repr__(self) -> str:
        return f"<ReplicaState [{self.log_start_offset}, {self.log_end_offset}) of broker epoch {self.broker_epoch}>"

    @property
    def has_fetched(self) -> bool:
        """Whether a fetch has counted in this leader epoch."""
        return self.log_end_offset != UNKNOWN_OFFSET

    def fetched(self, fetch_offset: int, log_start_offset: int, leader_end: int, broker_epoch: int, now: float) -> None:
        """Record a fetch at `fetch_offset` while the leader's log ended at `leader_end`."""
        if fetch_offset >= leader_end:
            self.last_caught_up_time = max(self.last_caught_up_time, now)
        elif self.has_fetched and fetch_offset >= self._last_fetch_leader_end:
            self.last_caught_up_time = max(self.last_caught_up_time, self._last_fetch_time)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._last_fetch_leader_end = max(leader_end, self._last_fetch_leader_end)
        self._last_fetch_time = now

    def is_caught_up(self, leader_end: int, now: float, lag_time_max: float) -> bool:
        """Whether it has the leader's end, or had the end of the time in the last `lag_time_max` seconds."""
        return self.log_end_offset == leader_end or now - self.last_caught_up_time <= lag_time_max
