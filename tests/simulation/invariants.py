"""The invariants between the brokers at any moment, checked from outside.

`check` is called again and again during a run:

- What a leader counts as committed is in the log of every member of the committed ISR, and every eligible leader
  replica, that could be elected now. Then every clean election keeps it.
- A high watermark does not fall in a leader epoch, is not above the end of the log, and does not move while fewer
  replicas are in sync than min.insync.replicas.
- The last stable offset does not fall in a leader epoch either, and is not above the high watermark.
- A decided transaction ends within `DECIDED_SECONDS` while all brokers serve, nothing is disturbed, and every partition
  has a leader and enough replicas in sync.
- A partition is led within `LED_SECONDS` while a replica can lead: it was in sync or eligible, has lost nothing since,
  its process serves, and nothing disturbs the store and the way to it.

- A log does not start above the records that clients may have deleted (`check_starts`).

`check_healed` is called when nothing disturbs the cluster any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from odradek.broker.coordinator.transactions.transaction import IDLE, PREPARED, Transaction
from odradek.broker.replication.partition import Partition as BrokerPartition
from odradek.protocol.errors import KafkaError
from odradek.protocol.records.batch_header import batch_headers
from tests.simulation.cluster import PROPERTIES, Cluster, Node
from tests.simulation.history import History, Partition
from tests.simulation.state import StoredState

LED_SECONDS = 10.0
"""The longest time without a leader while a replica can lead, in virtual time."""
DECIDED_SECONDS = 10.0
"""The longest time until a decided transaction has its markers: unanswered requests, and attempts a second apart."""
_MIN_ISR = int(PROPERTIES["min.insync.replicas"])


class Invariants:
    """The checks of one run; `fail` is called with each violation."""

    def __init__(self, cluster: Cluster, state: StoredState, fail: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._state = state
        self._fail = fail
        self._high_watermarks: dict[tuple[int, int, Partition, int], int] = {}
        self._stable_offsets: dict[tuple[int, int, Partition, int], int] = {}
        self._unled_since: dict[tuple[Partition, int], float] = {}  # by partition, and a broker that can lead it
        self._decided_since: dict[tuple[int, str, int, int], float] = {}  # by coordinator and decision
        self._with_few: dict[tuple[object, ...], int] = {}  # with fewer replicas in sync than an acknowledgement needs

    def partition(self, node: Node, partition: Partition) -> BrokerPartition | None:
        """Return a broker's replica, None if its process does not run or has none."""
        if node.broker is None or not hasattr(node.broker, "services"):
            return None
        found = node.broker.services.partitions.find_by_id(*partition)
        return None if isinstance(found, KafkaError) else found

    def maximal_isr(self, node_id: int, partition: Partition, epoch: int) -> set[int] | None:
        """Return what a broker counts, None unless it leads in this epoch."""
        node = self._cluster.nodes.get(node_id)
        replica = None if node is None else self.partition(node, partition)
        if replica is None or not replica.is_leader or replica.leader_epoch != epoch:
            return None
        return replica.maximal_isr()

    def check(self) -> None:
        self._check_led()
        self._check_decided()
        for partition, state in self._state.partitions.items():
            node = self._cluster.nodes.get(state.leader)
            leader = None if node is None else self.partition(node, partition)
            if node is None or leader is None or not leader.is_leader or leader.leader_epoch != state.leader_epoch:
                continue
            self._check_high_watermark(node, partition, leader)
            for member, epoch in {**state.elr, **state.isr}.items():
                end = self._electable_end(member, epoch, partition)
                if end is not None and end < leader.high_watermark:
                    self._fail(
                        f"{leader!r}: committed up to {leader.high_watermark}, but {member} may lead and ends at {end}"
                    )

    def check_starts(self, history: History) -> None:
        """Check that no log starts above the records that clients may have deleted: nothing else deletes any."""
        for partition, of_partition in history.partitions.items():
            for node_id, replica in self._replicas(partition).items():
                if replica is not None and replica.log.log_start_offset > of_partition.start:
                    start, deleted = replica.log.log_start_offset, of_partition.start
                    self._fail(f"{replica!r} of {node_id} starts at {start}, but deleted is only up to {deleted}")

    def _check_led(self) -> None:
        now = self._cluster.world.now
        unled = {}
        serving = [node for node in self._cluster.nodes.values() if self._cluster.serves_undisturbed(node.node_id)]
        for partition, state in self._state.partitions.items():
            if not serving or self.maximal_isr(state.leader, partition, state.leader_epoch) is not None:
                continue
            for node in serving:
                epoch_in_isr = {**state.elr, **state.isr}.get(node.node_id)
                registered = self._state.brokers.get(node.node_id)
                if epoch_in_isr is None or registered is None or registered.intact_since > epoch_in_isr:
                    continue
                since = unled[partition, node.node_id] = self._unled_since.get((partition, node.node_id), now)
                if now - since > LED_SECONDS:
                    name = f"{partition[0].hex()[:6]}-{partition[1]}"
                    self._fail(f"{name} is not led for {LED_SECONDS} s, although {node.node_id} can lead: {state}")
        self._unled_since = unled

    def _check_decided(self) -> None:
        now = self._cluster.world.now
        decided: dict[tuple[int, str, int, int], float] = {}
        for node_id, name, each in self._decided() if self._all_serve() else ():
            key = (node_id, name, each.producer_id, each.producer_epoch)
            since = decided[key] = self._decided_since.get(key, now)
            if now - since > DECIDED_SECONDS:
                self._fail(f"{name} is decided for {DECIDED_SECONDS} s, but has not ended: {each}")
        self._decided_since = decided

    def _decided(self) -> Iterator[tuple[int, str, Transaction]]:
        """Yield the decided transactions that have not ended, each with its id and a broker that has loaded it."""
        for node_id, node in self._cluster.nodes.items():
            if node.broker is None or not node.has_started:
                continue
            for shard in node.broker.services.transactions.shards():
                for name, each in shard.transactions.items():
                    if each.status in PREPARED:
                        yield node_id, name, each

    def deciding(self) -> int | None:
        """Return a broker that runs and has loaded a decided transaction, None if none has."""
        return next((node_id for node_id, _, _ in self._decided() if not self._cluster.nodes[node_id].is_paused), None)

    def _all_serve(self) -> bool:
        """Return whether nothing is disturbed, and every partition has a leader and enough replicas in sync."""
        cluster = self._cluster
        return (
            not cluster.network.is_disturbed
            and all(map(cluster.serves_undisturbed, cluster.nodes))
            and all(len(state.isr) >= _MIN_ISR for state in self._state.partitions.values())
            and self.led()
        )

    def _check_high_watermark(self, node: Node, partition: Partition, leader: BrokerPartition) -> None:
        key = (node.node_id, len(node.brokers), partition, leader.leader_epoch)
        before = self._high_watermarks.get(key, 0)
        now = self._high_watermarks[key] = leader.high_watermark
        if now < before:
            self._fail(f"{leader!r}: the high watermark fell from {before} to {now}")
        if len(leader.maximal_isr()) < _MIN_ISR:
            few = (*key, len(leader.isr), leader.image.partition_epoch if leader.image else -1)
            if now > self._with_few.setdefault(few, now):
                self._fail(f"{leader!r}: the high watermark moved to {now} with {sorted(leader.isr)} in sync")
        stable = leader.log.last_stable_offset
        stable_before = self._stable_offsets.get(key, 0)
        self._stable_offsets[key] = stable
        if not stable_before <= stable <= now:
            self._fail(f"{leader!r}: the last stable offset moved from {stable_before} to {stable} of {now}")
        if now > leader.log.log_end_offset:
            self._fail(f"{leader!r}: the high watermark {now} is above the end {leader.log.log_end_offset}")

    def _electable_end(self, member: int, epoch_in_isr: int, partition: Partition) -> int | None:
        """Return where the log of a member ends, None if it could not be elected as it is now."""
        node, registered = self._cluster.nodes[member], self._state.brokers.get(member)
        if registered is None or registered.intact_since > epoch_in_isr or node.broker is None:
            return None
        replica = self.partition(node, partition)
        if replica is None or node.broker.services.metadata.broker_epoch != registered.epoch:
            return None
        return replica.log.log_end_offset

    # ------------------------------------------------------------------------------------------------------ healed

    def led(self) -> bool:
        """Return whether every partition has a leader that knows it."""
        return all(
            self.maximal_isr(state.leader, partition, state.leader_epoch) is not None
            for partition, state in self._state.partitions.items()
        )

    def in_sync(self) -> bool:
        """Return whether every partition has all replicas in sync, and each counts all records as committed."""
        return self.led() and all(
            len(state.isr) == len(self._cluster.nodes) and len(self._ends(partition)) == 1
            for partition, state in self._state.partitions.items()
        )

    def open_transactions(self) -> list[str]:
        """Describe the transactions that have not ended, in the logs of the leaders and at their coordinator."""
        found = []
        for partition, state in self._state.partitions.items():
            node = self._cluster.nodes.get(state.leader)
            leader = None if node is None else self.partition(node, partition)
            if leader is None or leader.log.last_stable_offset < leader.high_watermark:
                found.append(f"{partition[0].hex()[:6]}-{partition[1]} {state} {leader!r}")
        for node in self._cluster.nodes.values():
            for shard in () if node.broker is None else node.broker.services.transactions.shards():
                found += [f"{name} {each}" for name, each in shard.transactions.items() if each.status not in IDLE]
        return found

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the highest high watermark of each partition's replicas."""
        return {
            each: max(0 if replica is None else replica.high_watermark for replica in self._replicas(each).values())
            for each in partitions
        }

    def _ends(self, partition: Partition) -> set[int]:
        """Return the ends and the high watermarks of all replicas."""
        replicas = [self.partition(node, partition) for node in self._cluster.nodes.values()]
        ends = {-1 if each is None else each.log.log_end_offset for each in replicas}
        return ends | {-1 if each is None else each.high_watermark for each in replicas}

    def describe(self) -> str:
        """Describe what is not in sync, for a failure."""
        found = []
        for partition, state in self._state.partitions.items():
            leads = self.maximal_isr(state.leader, partition, state.leader_epoch) is not None
            ends = {
                node_id: each and (each.high_watermark, each.log.log_end_offset)
                for node_id, each in self._replicas(partition).items()
            }
            if not leads or len(state.isr) < len(ends) or len(self._ends(partition)) > 1:
                found.append(f"{partition[0].hex()[:6]}-{partition[1]} {state} leads {leads} committed, end: {ends}")
        return "; ".join(found)

    def _replicas(self, partition: Partition) -> dict[int, BrokerPartition | None]:
        return {node_id: self.partition(node, partition) for node_id, node in self._cluster.nodes.items()}

    def check_healed(self) -> None:
        """Check the logs when all replicas are in sync."""
        for partition in self._state.partitions:
            replicas = self._replicas(partition)
            start = max(0 if each is None else each.log.log_start_offset for each in replicas.values())
            contents = {node_id: _content(each, start) for node_id, each in replicas.items()}
            if len(set(contents.values())) != 1:
                sizes = {node_id: len(content) for node_id, content in contents.items()}
                self._fail(f"{partition[0].hex()[:6]}-{partition[1]}: the replicas differ, sizes {sizes}")

    def leftovers(self, deleted: set[bytes]) -> list[str]:
        """Describe what brokers still have of deleted topics."""
        found = []
        for node in self._cluster.nodes.values():
            for topic_id in sorted(deleted):
                if node.broker is not None and topic_id in node.broker.services.metadata.image.topics_by_id:
                    found.append(f"broker {node.node_id} serves a deleted topic")
                logs = () if node.broker is None else node.broker.log_dirs.logs.values()
                if any(log.topic_id == topic_id for log in logs):
                    found.append(f"broker {node.node_id} has the log of a deleted topic")
        return found


def _content(replica: BrokerPartition | None, start: int) -> bytes:
    """Return the bytes of a log from the batch at `start` up to the high watermark."""
    if replica is None:
        return b"no replica"
    parts, offset = [], start
    while offset < replica.high_watermark:
        found = replica.log.read(offset, 1 << 20, replica.high_watermark, True)
        data = replica.log.bytes_of(found)
        for _, header in batch_headers(data):
            offset = header.next_offset
        parts.append(bytes(data))
    return b"".join(parts)
