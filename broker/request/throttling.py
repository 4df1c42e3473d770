"""The enforcement of client quotas on requests (KIP-219, KIP-599).

```
handler ─► response ─► Throttling.charge ─► throttle time in the response, sent at once
                                        └─► ConnectionContext.throttle_ms: the connection is then not read for so long
```

| quota | charged with | when it is over |
|---|---|---|
| `producer_byte_rate` | the bytes of a Produce request, when it is answered | the request has been executed |
| `consumer_byte_rate` | the bytes of the records of a Fetch response | there are none (`throttled_fetch`) |
| `request_percentage` | the time that a request takes of the event loop | as above |
| `controller_mutation_rate` | partitions created and deleted | see `MutationQuota` |

A client is its principal's name and its client id. 100 % of `request_percentage` are the whole event loop: the decoding
of requests, their handlers, whether they run at once, in slices or after a wait, and the encoding of their responses.
Differs from Kafka, where each I/O and each network thread is 100 %. What an append or a read does on a thread of the
disk is not counted.

What brokers send each other is exempt, as in Kafka: Fetch of followers, WriteTxnMarkers, AddPartitionsToTxn 4 and
later, each only at the listener that brokers use among themselves.

The server asks `is_active`, and calls nothing else while no client of the cluster has a quota.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final, TypeVar

from odradek.broker.metadata.image import ImageChange
from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.quotas.connection_rates import AddressRates
from odradek.broker.quotas.entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Entity,
)
from odradek.broker.quotas.usage import Usage
from odradek.broker.request.context import RequestContext
from odradek.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")

_PRODUCE: Final = 0
_FETCH: Final = 1
_ADD_PARTITIONS_TO_TXN: Final = 24
_WRITE_TXN_MARKERS: Final = 27
_FIRST_VERSION_OF_BROKERS: Final = 4  # of AddPartitionsToTxn
_PERCENT: Final = 100.0
_UNLIMITED: Final = 0x7FFF_FFFF


class Throttling:
    """The quotas of one broker's clients. `inter_broker_listener` returns the name of that listener.

    `addresses` are the quotas of addresses, which the listeners enforce.
    """

    def __init__(
        self,
        quotas: ClientQuotas,
        addresses: AddressRates,
        monotonic: Callable[[], float],
        inter_broker_listener: Callable[[], str | None],
    ) -> None:
        self.quotas = quotas
        self.addresses = addresses
        self.monotonic = monotonic
        self.is_active = False
        """Whether any client has a quota."""
        self.on_active: list[Callable[[], None]] = []
        """Called when `is_active` has changed."""
        self._inter_broker_listener = inter_broker_listener

    def image_changed(self, change: ImageChange) -> None:
        """Apply the quotas that differ: building those of 20,000 users again would take 40 ms of each transaction."""
        before, stored = change.before.client_quotas, change.after.client_quotas
        if stored is before:
            return
        quotas: dict[Entity, Mapping[str, float]] = {entity: {} for entity in before if entity not in stored}
        quotas |= {entity: after[0] for entity, after in stored.items() if before.get(entity) is not after}
        self.quotas.set(quotas)
        if any(entity[0][0] == IP for entity in quotas):  # all, for an address may have two names
            self.addresses.set({entity: limits for entity, (limits, _) in stored.items()})
        is_active = bool(self.quotas)
        if is_active is not self.is_active:
            self.is_active = is_active
            for notify in self.on_active:
                notify()

    def charge(self, context: RequestContext, request: Any, response: Any, seconds: float) -> None:
        """Charge a client with a request that took `seconds` of the event loop, before its response is encoded.

        Set the throttle time of the response and of the connection: the longest of the quotas, and what the handler has
        set. `request` is None if it could not be decoded, `response` if there is none.
        """
        if self._is_exempt(context, request):
            return
        now = self.monotonic()
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        usage = self._find(REQUEST_PERCENTAGE, context, now)
        if usage is not None:
            if context.api_key == _FETCH:  # the next one has no records; this one has them already
                usage.charge_unchecked(seconds * _PERCENT, now)
            else:
                throttle_ms = _throttled(usage, usage.charge(seconds * _PERCENT, now), throttle_ms, now)
        if context.api_key == _PRODUCE:
            usage = self._find(PRODUCER_BYTE_RATE, context, now)
            if usage is not None:
                throttle_ms = _throttled(usage, usage.charge(context.size, now), throttle_ms, now)
        if throttle_ms:
            if hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms
            context.connection.throttle_ms = max(throttle_ms, context.connection.throttle_ms)

    def charge_time(self, context: RequestContext, request: Any, seconds: float) -> None:
        """Charge a client with time that its request took after `charge`. It counts for the next request."""
        now = self.monotonic()
        usage = self._find(REQUEST_PERCENTAGE, context, now)
        if usage is not None and not self._is_exempt(context, request):
            usage.charge_unchecked(seconds * _PERCENT, now)

    def measure(self, work: Awaitable[T], context: RequestContext) -> Awaitable[T]:
        """Return `work`, with the time that it takes of the event loop added to `context.loop_seconds`."""
        return _Measured(work, context, self.monotonic)

    def throttle_fetch(self, context: RequestContext, size: int) -> int:
        """Charge a consumer with `size` bytes of records, or return for how many milliseconds it must not get them."""
        now = self.monotonic()
        throttle_ms = 0
        requests = self._find(REQUEST_PERCENTAGE, context, now)
        if requests is not None:
            throttle_ms = _throttled(requests, requests.throttle_ms(now), 0, now)
        usage = self._find(CONSUMER_BYTE_RATE, context, now)
        if usage is None:
            return throttle_ms
        if size > usage.most_at_once:
            throttle_ms = _throttled(usage, usage.throttle_ms(now), throttle_ms, now)
            if not throttle_ms:
                usage.borrow(size, now)
            return throttle_ms
        throttle_ms = _throttled(usage, usage.charge(size, now), throttle_ms, now)
        if throttle_ms:
            usage.charge_unchecked(-size, now)
        return throttle_ms

    def fetch_window_bytes(self, context: RequestContext) -> int:
        """Return the bytes above which a Fetch is over its quota by itself, to limit its reads as Kafka does."""
        usage = self._find(CONSUMER_BYTE_RATE, context, self.monotonic())
        return _UNLIMITED if usage is None else min(int(usage.most_at_once), _UNLIMITED)

    def mutations(self, context: RequestContext, strict_from: int) -> MutationQuota:
        """Return the quota of controller mutations of one request; it is strict from that version of the API on."""
        usage = None
        if self.is_active:
            usage = self._find(CONTROLLER_MUTATION_RATE, context, self.monotonic())
        return MutationQuota(usage, self.monotonic, is_strict=context.api_version >= strict_from)

    def _find(self, kind: str, context: RequestContext, now: float) -> Usage | None:
        return self.quotas.find(kind, context.connection.principal.name, context.client_id or "", now)

    def _is_exempt(self, context: RequestContext, request: Any) -> bool:
        key = context.api_key
        if key == _FETCH:
            if request is None or (request.replica_id < 0 and request.replica_state.replica_id < 0):
                return False
        elif key == _ADD_PARTITIONS_TO_TXN:
            if context.api_version < _FIRST_VERSION_OF_BROKERS:
                return False
        elif key != _WRITE_TXN_MARKERS:
            return False
        return context.listener_name == self._inter_broker_listener()


class MutationQuota:
    """The quota of controller mutations for one request; without `usage` there is no limit.

    Strict: a mutation is refused with THROTTLING_QUOTA_EXCEEDED while the bucket is overdrawn. Else every mutation
    happens, and the client is throttled.
    """

    def __init__(self, usage: Usage | None, monotonic: Callable[[], float], *, is_strict: bool) -> None:
        self._usage = usage
        self._monotonic = monotonic
        self._is_strict = is_strict
        self._is_exceeded = False

    def take(self, partitions: int) -> None:
        """Charge the creation or deletion of partitions. Raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        usage = self._usage
        if usage is None:
            return
        now = self._monotonic()
        if self._is_strict and usage.throttle_ms(now):
            self._is_exceeded = True
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "")  # without a text, as in Kafka
        usage.charge_unchecked(partitions, now)
        self._is_exceeded = not self._is_strict and usage.throttle_ms(now) > 0

    def throttle_ms(self) -> int:
        """Return the throttle time for the response; 0 if nothing was refused, or throttled."""
        if self._usage is None or not self._is_exceeded:
            return 0
        now = self._monotonic()
        throttle_ms = self._usage.throttle_ms(now)
        if throttle_ms:
            self._usage.record_throttle(throttle_ms, now)
        return throttle_ms


class _Measured(Awaitable[T]):
    """An awaitable that adds up the time for which it runs, without its waits."""

    def __init__(self, work: Awaitable[T], context: RequestContext, monotonic: Callable[[], float]) -> None:
        self._work = work
        self._context = context
        self._monotonic = monotonic

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        context, monotonic = self._context, self._monotonic
        error: BaseException | None = None
        while True:
            began = monotonic()
            try:
                waits_for = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                context.loop_seconds += monotonic() - began
            error = None
            try:
                yield waits_for
            except BaseException as raised:  # noqa: BLE001 - a cancellation belongs to the work
                error = raised


def _throttled(usage: Usage, milliseconds: int, throttle_ms: int, now: float) -> int:
    """Record a throttle time of a quota, and return the longer one."""
    if milliseconds > throttle_ms:
        usage.record_throttle(milliseconds, now)
        return milliseconds
    return throttle_ms
