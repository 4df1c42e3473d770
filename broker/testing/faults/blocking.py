"""The faults of a broker on a thread of its own, for tests on other threads."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar, Unpack

from odradek.broker.broker import Broker
from odradek.broker.testing.faults.faults import Faults
from odradek.broker.testing.faults.request_rules import BEFORE, Filters
from odradek.broker.testing.faults.rule import Rule
from odradek.protocol.errors import ErrorCode

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

T = TypeVar("T")


class BrokerThread(Protocol):
    """A broker that runs on a thread of its own: `ThreadedBroker`."""

    @property
    def broker(self) -> Broker: ...

    def call(self, function: Callable[[], T], /) -> T:
        """Run a function on the broker's event loop, and return its result. Raises RuntimeError if it is stopped."""
        ...


class BlockingRule:
    """A `Rule` as another thread sees it."""

    def __init__(self, rule: Rule, call: Callable[..., object]) -> None:
        self._rule = rule
        self._call = call

    def __str__(self) -> str:
        return str(self._rule)

    def __repr__(self) -> str:
        return repr(self._rule)

    @property
    def hits(self) -> int:
        """The number of requests or disk operations that the rule has changed."""
        return self._rule.hits

    @property
    def optional(self) -> bool:
        """Whether a test may pass in which the rule was never hit."""
        return self._rule.optional

    def remove(self) -> None:
        """End the rule, and return when it has ended. A second call has no effect."""
        self._call(self._rule.remove)


class BlockingPause(BlockingRule):
    """Requests wait until the block ends: `with faults.pause(…) as rule`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class BlockingFaults:
    """The methods of `Faults`, for a test on another thread than the broker's. See there for all arguments.

    Rules may be made and removed while the broker is stopped.
    """

    def __init__(self, thread: BrokerThread) -> None:
        self._thread = thread
        self._faults = Faults(thread.broker)

    def fail(self, api: str, error: str | ErrorCode, **filters: Unpack[Filters]) -> BlockingRule:
        """Answer requests with an error, without executing them."""
        return self._made(lambda: self._faults.fail(api, error, **filters))

    def delay(self, api: str, seconds: float, **filters: Unpack[Filters]) -> BlockingRule:
        """Execute requests so many seconds later, or when the rule is removed."""
        return self._made(lambda: self._faults.delay(api, seconds, **filters))

    def drop(self, api: str, when: str = BEFORE, **filters: Unpack[Filters]) -> BlockingRule:
        """Close the connection of a request, `before` it is executed, or `after`: then only its answer is lost."""
        return self._made(lambda: self._faults.drop(api, when, **filters))

    def pause(self, api: str | None = None, **filters: Unpack[Filters]) -> BlockingPause:
        """Hold back requests, of an API or all, until the end of the block."""
        return BlockingPause(self._call(lambda: self._faults.pause(api, **filters)), self._call)

    def throttle(self, api: str, ms: int, **filters: Unpack[Filters]) -> BlockingRule:
        """Put a throttle time into answers, and mute their connections for as long."""
        return self._made(lambda: self._faults.throttle(api, ms, **filters))

    def disk_full(self, after: int, path: str | None = None, *, optional: bool = False) -> BlockingRule:
        """Fail writes with ENOSPC once `after` more bytes have been written."""
        return self._made(lambda: self._faults.disk_full(after, path, optional=optional))

    def io_error(
        self,
        path: str | None = None,
        on: str = "write",
        nth: int = 1,
        error: int | str = errno.EIO,
        *,
        optional: bool = False,
    ) -> BlockingRule:
        """Fail one operation, the `nth` write, sync or read from now on."""
        return self._made(lambda: self._faults.io_error(path, on, nth, error, optional=optional))

    def slow_disk(
        self, ms: float, on: str | None = None, path: str | None = None, *, optional: bool = False
    ) -> BlockingRule:
        """Make each write, sync or read (None: all) take `ms` milliseconds longer."""
        return self._made(lambda: self._faults.slow_disk(ms, on, path, optional=optional))

    @property
    def rules(self) -> list[BlockingRule]:
        """The rules that were made and not removed, the oldest first."""
        return self._call(lambda: [BlockingRule(rule, self._call) for rule in self._faults.rules])

    def unused(self) -> list[BlockingRule]:
        """The rules since the last `clear`, removed or not, that were never hit and are not optional."""
        return self._call(lambda: [BlockingRule(rule, self._call) for rule in self._faults.unused()])

    def clear(self) -> None:
        """Remove all rules and forget them. Requests that they hold back go on."""
        self._call(self._faults.clear)

    def _made(self, make: Callable[[], Rule]) -> BlockingRule:
        return BlockingRule(self._call(make), self._call)

    def _call(self, function: Callable[[], T]) -> T:
        """Run a function on the broker's thread, or here if the broker is stopped, when nothing runs beside it."""
        try:
            return self._thread.call(function)
        except RuntimeError:
            return function()
