"""The interface of a coordinator's state: everything that the records of one partition say.

A coordinator implements it once, and the runtime makes one object for each partition that this broker leads. Kafka's
`CoordinatorShard` is the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from odradek.broker.coordinator.runtime.events import Effects, Event
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.errors import ErrorCode, KafkaError

NO_PRODUCER = -1


class CoordinatorShard(Protocol):
    """The state of one partition, by key. Only the runtime calls these methods; the package says when."""

    def __contains__(self, key: str) -> bool:
        """Whether the state has something under this key. If it has nothing, the timers of the key are cancelled."""
        ...

    def handle(self, key: str, event: Any, now_ms: int) -> Effects:
        """Return the effects of an event: an `Event`, TimerExpired, WorkFailed, or a result of `Effects.work`.

        Raises KafkaError, which becomes the event's reply; then nothing has changed.
        """
        ...

    def busy_error(self, key: str, event: Event) -> KafkaError | None:
        """Return the error of a request whose key has an append pending, or None: then it waits for that append."""
        ...

    def replay(
        self, record: CoordinatorRecord, record_offset: int, now_ms: int, producer_id: int = NO_PRODUCER
    ) -> None:
        """Change the state as the record says. `producer_id` is that of an open transaction, or NO_PRODUCER.

        Called on a thread while the partition is loaded, afterwards on the event loop. Raises ValueError if the
        record contradicts itself; loading skips it then.
        """
        ...

    def replay_end_transaction_marker(self, producer_id: int, *, committed: bool) -> None:
        """Apply the records of this producer's open transaction to the state, or discard them."""
        ...

    def event_completed(self, key: str, effects: Effects, error: KafkaError | None) -> None:
        """Clean up after an event: its records have been replayed, or could not be written because of `error`."""
        ...

    def append_completed(self, key: str, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        """Return the effects of the end of an append whose effects had a `follow_up`; `error` is as clients get it."""
        ...

    def loaded(self, now_ms: int) -> Iterable[tuple[str, Effects]]:
        """Return the effects of being loaded, by key: mostly the timers to run."""
        ...

    def unloaded(self) -> Iterable[Effects]:
        """Return replies for the requests that still wait. Nothing else of these effects is carried out."""
        ...


S = TypeVar("S", bound=CoordinatorShard)

ShardObserver = Callable[[CoordinatorShard, S], CoordinatorShard]
"""Returns an object that the runtime calls in place of the first argument, which it must call in turn, for tracing.

The second argument is the state itself, to read. Only `handle`, `replay`, `event_completed` and `append_completed` are
called on the returned object.
"""
