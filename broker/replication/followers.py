"""The leader's view of all followers of one partition, and the ISR changes that this view suggests.

```
fetch ─► record ─┬─ other leader epoch, or not the registered broker epoch ─► nothing moves
                 └─ state of the replica ─► high watermark; may it join the ISR?
```

The view begins empty with each leader epoch: what a follower reported to another leader, or to this one in another
epoch, may have been truncated since. A fetch counts only with the broker epoch that is registered (KIP-903): a request
from before a restart, or from a client that claims to be a replica, reads but moves nothing.

Used on the event loop; only `partition` changes it. The decisions themselves are in `isr`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from odradek.broker.clock import Clock
from odradek.broker.metadata.image import BrokerImage
from odradek.broker.metadata.values import RUNNING
from odradek.broker.replication.isr import has_reached, high_watermark, lagging
from odradek.broker.replication.replica_state import NEVER, ReplicaState

LAG_TIME_MAX = 30.0
"""Seconds; Kafka's default of replica.lag.time.max.ms."""


class Followers:
    """The followers of a partition that this broker leads. `brokers` returns a registered broker of the newest image.

    `lag_time_max` is replica.lag.time.max.ms in seconds.
    """

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        brokers: Callable[[int], BrokerImage | None],
        lag_time_max: float = LAG_TIME_MAX,
    ) -> None:
        self.states: dict[int, ReplicaState] = {}
        self._node_id = node_id
        self._clock = clock
        self._brokers = brokers
        self._lag_time_max = lag_time_max

    def begin_epoch(self, replicas: Sequence[int], isr: Collection[int]) -> None:
        """Forget what followers have reported. Members of the ISR count as caught up now, others as never."""
        self.states = {}
        self.assign(replicas, isr)

    def assign(self, replicas: Sequence[int], isr: Collection[int]) -> None:
        """Keep the states of the replicas that stay, within an epoch, and add those of new ones."""
        now = self._clock.monotonic()
        self.states = {
            replica: self.states.get(replica) or ReplicaState(now if replica in isr else NEVER)
            for replica in replicas
            if replica != self._node_id
        }

    def record(
        self, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int, leader_end: int
    ) -> ReplicaState | None:
        """Record a fetch of the present leader epoch; return None if it does not count."""
        state = self.states.get(replica_id)
        broker = self._brokers(replica_id)
        if state is None or broker is None or broker.epoch != broker_epoch:
            return None
        state.fetched(fetch_offset, log_start_offset, leader_end, broker_epoch, self._clock.monotonic())
        state.sent_after = state.answered_at
        return state

    def record_answer(self, replica_id: int, broker_epoch: int) -> None:
        """Record that a fetch of this follower is being answered. Its next fetch is sent later."""
        state = self.states.get(replica_id)
        if state is not None and state.broker_epoch == broker_epoch:
            state.answered_at = self._clock.boot_time()

    def high_watermark(self, own_end: int, leader_end: int, maximal_isr: Collection[int]) -> int:
        """The largest offset that the high watermark may have now; `own_end` is the leader's end that counts."""
        joining = [
            replica
            for replica, state in self.states.items()
            if state.log_end_offset < own_end
            and replica not in maximal_isr
            and self._is_eligible(replica, state)
            and state.is_caught_up(leader_end, self._clock.monotonic(), self._lag_time_max)
        ]
        return high_watermark(own_end, self.states, maximal_isr, joining)

    def may_join(self, replica: int, committed: int, epoch_start_offset: int) -> bool:
        """Whether a replica outside the ISR has reached the high watermark and the start of the epoch."""
        state = self.states.get(replica)
        return (
            state is not None
            and has_reached(state.log_end_offset, committed, epoch_start_offset)
            and self._is_eligible(replica, state)
        )

    def lagging(self, isr: Collection[int], leader_end: int) -> set[int]:
        """The members of the ISR that should leave it."""
        return lagging(isr, self.states, leader_end, self._clock.monotonic(), self._lag_time_max)

    def low_watermark(self, log_start_offset: int) -> int:
        """The smallest log start offset of the leader and the live followers; -1 if one is unknown."""
        starts = [state.log_start_offset for node, state in self.states.items() if self._is_live(node)]
        return min([log_start_offset, *starts])

    def vouch(self, isr: Collection[int], seconds: float) -> bool:
        """Whether `isr` has other members, and each has sent a fetch of this epoch in the last `seconds` of boot time.

        None of them led a later epoch then, and a new leader is one of them. When a fetch was sent is not known, only
        that it was after the answer to the one before: so a fetch that a paused leader receives late does not count.
        """
        others = [replica for replica in isr if replica != self._node_id]
        since = self._clock.boot_time() - seconds
        return bool(others) and all(
            replica in self.states and self.states[replica].sent_after >= since for replica in others
        )

    def _is_live(self, replica: int) -> bool:
        broker = self._brokers(replica)
        return broker is not None and broker.is_alive

    def _is_eligible(self, replica: int, state: ReplicaState) -> bool:
        """Whether a replica runs, and still is the incarnation that has fetched."""
        broker = self._brokers(replica)
        return broker is not None and broker.state == RUNNING and broker.epoch == state.broker_epoch
