"""Transactions that change the states of partitions: as many in each as the store allows.

```
compares   the conditions of the caller, for example that it is still the controller
           the state of each partition, as it was when the change was decided
           the registration of each broker that is to lead: it runs, and has lost nothing since
writes     the state of each partition, and its assignment if its replicas change
```

So a transaction that is delivered late cannot elect a broker that has restarted meanwhile and may have lost records. An
assignment changes only together with the state, so that to compare the state is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.broker.metadata.image import BrokerImage, PartitionImage, TopicImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.leadership import NO_LEADER, Decision
from odradek.broker.metadata.store.store import MAX_OPERATIONS, Cmp, Op, Put, still
from odradek.broker.metadata.values import encode


class StateChange(NamedTuple):
    """A decision about one partition of a topic in an image."""

    topic: TopicImage
    partition_index: int
    decision: Decision

    @property
    def partition(self) -> PartitionImage:
        return self.topic.partitions[self.partition_index]

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.partition_index}"


class Transaction:
    """One transaction: `changes` with what it compares (`when`) and writes (`then`)."""

    def __init__(self, keys: Keys, brokers: Mapping[int, BrokerImage], guards: Iterable[Cmp]) -> None:
        """`brokers`: of the image on which the changes were decided."""
        self.changes: list[StateChange] = []
        self.when: list[Cmp] = list(guards)
        self.then: list[Op] = []
        self._keys = keys
        self._brokers = brokers
        self._leaders: set[int] = set()

    @property
    def is_full(self) -> bool:
        """True if another change may not fit: it adds up to two comparisons and two operations."""
        return max(len(self.when), len(self.then)) > MAX_OPERATIONS - 2

    def add(self, change: StateChange) -> None:
        """Add a change of another partition. The transaction must not be full."""
        topic_id, partition, decision = change.topic.topic_id, change.partition, change.decision
        key = self._keys.partition_state(topic_id, change.partition_index)
        self.when.append(still(key, partition.state_revision))
        self.then.append(Put(key, encode(decision.state, partition.state_value)))
        if decision.assignment is not None:
            self.then.append(Put(self._keys.assignment(topic_id, change.partition_index), encode(decision.assignment)))
        leader = decision.state.leader
        if leader not in (NO_LEADER, partition.leader) and leader not in self._leaders:
            self._leaders.add(leader)
            self.when.append(still(self._keys.broker_id(leader), self._brokers[leader].revision))
        self.changes.append(change)


def transactions(
    keys: Keys, brokers: Mapping[int, BrokerImage], changes: Iterable[StateChange], *guards: Cmp
) -> Iterator[Transaction]:
    """Yield the changes, all of different partitions, in transactions; each also compares `guards`."""
    transaction = Transaction(keys, brokers, guards)
    for change in changes:
        transaction.add(change)
        if transaction.is_full:
            yield transaction
            transaction = Transaction(keys, brokers, guards)
    if transaction.changes:
        yield transaction
