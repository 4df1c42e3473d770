"""Fencing: whether this broker may still act for a partition that it leads, decided at each answer to a client.

```
lease of the registration    fencing.mode=isr (default)                                     fencing.mode=strict
───────────────────────────┬──────────────────────────────────────────────────────────────┬───────────────────
exists for certain         │ served                                                       │ served
may have ended             │ served, if the partition has a single replica                │ refused
                           │ served, while the other in-sync replicas vouch for it        │ refused
                           │ refused: NOT_LEADER_OR_FOLLOWER, coordinators NOT_COORDINATOR │ refused
```

While the lease exists, the other brokers do not take this one for dead, and the metadata watch reports every other
change of a leader. After the deadline of the lease another broker may lead, unknown to this one.

The in-sync replicas vouch if there are others than this broker, and each of them has sent a fetch of the present leader
epoch within two replica.fetch.wait.max.ms. A new leader is one of them, and it stops fetching before it leads. So an
outage of the metadata store, in which nobody can be elected, stops administration and nothing else; and a leader that
was replaced stops after that time. The *maximal* in-sync set counts, because a proposed member may be elected too.

All times are those of `Clock.boot_time`, which counts the time for which the machine sleeps.

Fencing limits for how long clients see an old leader, and records with acks=1 are lost. Records with acks=all do not
depend on it, nor on any clock: they need the high watermark, which a leader that was replaced cannot move. A fetch
counts from the answer to the one before, after which it was sent, and not from its arrival: it may have been on its
way for long, or a paused leader may receive it late.

Fetches of followers are never refused here: they are what vouches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.replication.followers import Followers

STRICT: Final = "strict"
_FETCHES: Final = 2


class Fencing:
    """The fencing of one broker. `deadline` returns the boot time until which its registration exists for certain."""

    def __init__(
        self, clock: Clock, deadline: Callable[[], float], *, mode: str, replica_fetch_wait_max_ms: int
    ) -> None:
        self._clock = clock
        self._deadline = deadline
        self._is_strict = mode == STRICT
        self._seconds = _FETCHES * replica_fetch_wait_max_ms / 1000

    def has_lapsed(self) -> bool:
        """Whether the lease may have ended."""
        return self._clock.boot_time() >= self._deadline()

    def is_vouched_for(self, replicas: Sequence[int], maximal_isr: Collection[int], followers: Followers) -> bool:
        """Whether a partition is served although the lease may have ended."""
        if self._is_strict:
            return False
        return len(replicas) == 1 or followers.vouch(maximal_isr, self._seconds)
