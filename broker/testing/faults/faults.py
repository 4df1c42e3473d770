"""The faults of one broker: the rules that a test makes, and their installation in the broker."""

from __future__ import annotations

import errno
from typing import TypeVar, Unpack

from odradek.broker.broker import Broker
from odradek.broker.request.handler import Interceptor
from odradek.broker.server.routes import Routes
from odradek.broker.testing.faults import arguments
from odradek.broker.testing.faults.disk_faults import DiskFaults
from odradek.broker.testing.faults.disk_rules import DiskFull, DiskRule, IoError, SlowDisk
from odradek.broker.testing.faults.request_faults import RequestFaults
from odradek.broker.testing.faults.request_rules import (
    BEFORE,
    Delay,
    Drop,
    Fail,
    Filters,
    Pause,
    RequestRule,
    Throttle,
)
from odradek.broker.testing.faults.rule import Rule
from odradek.protocol.errors import ErrorCode

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

_R = TypeVar("_R", bound=Rule)


class Faults:
    """Makes rules for the requests and the disk of a broker. Used on the broker's event loop.

    The rules for requests take the name of an API, as in Kafka (`Produce`, `ListOffsets`), and these arguments:

    | argument | the rule is for |
    |---|---|
    | `topic` | requests that name this topic, or mean all; a failure changes only the rows of this topic |
    | `partition` | the same for the partitions with this number, of this topic or of any |
    | `client_id` | the clients with exactly this id |
    | `times` | so many requests; then it has no effect any more |
    | `probability`, `seed` | this share of the requests; the same seed chooses the same ones |
    | `optional` | also a test in which it is never hit |

    Each returns a `Rule`. A wrong argument is a ValueError, which names the nearest right one. Rules are applied in the
    order in which they were made; the first that fails a row decides. A request of another broker counts like one of a
    client. What a broker does within itself is no request.

    Rules stay when the broker stops, and hold again when it has started.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._made: list[Rule] = []  # since the last `clear`, with those that were removed
        self._rules: list[Rule] = []
        self._requests = RequestFaults()
        self._disk = DiskFaults()
        self._routes: Routes | None = None  # of the run of the broker to which these interceptors were added
        self._interceptors: list[Interceptor] = []
        broker.on_start.append(self._attach)

    # --------------------------------------------------------------------------------------------------------- requests

    def fail(self, api: str, error: str | ErrorCode, **filters: Unpack[Filters]) -> Rule:
        """Answer requests with an error, by its name in Kafka, without executing them.

        With `topic` or `partition` only the matching rows fail; the rest of the request is executed. Otherwise the
        answer as a whole has the error: in its own field if the API has one, else in every row. Produce with acks=0 has
        no answer: the connection is closed.
        """
        return self._add(Fail(arguments.api_named(api), arguments.error_named(error), **filters))

    def delay(self, api: str, seconds: float, **filters: Unpack[Filters]) -> Rule:
        """Execute requests so many seconds later, or when the rule is removed. Other connections are served meanwhile.

        The following requests of the same connection wait, too, because a broker executes them in their order.
        """
        return self._add(Delay(arguments.api_named(api), seconds, **filters))

    def drop(self, api: str, when: str = BEFORE, **filters: Unpack[Filters]) -> Rule:
        """Close the connection of a request, `before` it is executed, or `after`: then only its answer is lost."""
        return self._add(Drop(arguments.api_named(api), when, **filters))

    def pause(self, api: str | None = None, **filters: Unpack[Filters]) -> Pause:
        """Hold back requests, of an API or all, until the end of the block, which executes them.

        `with faults.pause("Produce"): …`, or `async with`. Requests that do not match, on other connections, are served
        meanwhile.
        """
        return self._add(Pause(None if api is None else arguments.api_named(api), **filters))

    def throttle(self, api: str, ms: int, **filters: Unpack[Filters]) -> Rule:
        """Put a throttle time into answers, and mute their connections for as long.

        As from Kafka, the answer comes at once, and the next request of the connection waits.
        """
        return self._add(Throttle(arguments.api_named(api), ms, **filters))

    # ------------------------------------------------------------------------------------------------------------- disk

    def disk_full(self, after: int, path: str | None = None, *, optional: bool = False) -> Rule:
        """Fail writes with ENOSPC once `after` more bytes have been written, to the files that `path` fits.

        `path` is a pattern (`*.timeindex`) or a partition (`orders-0`). What fits is written, as to a real disk. The
        broker then takes its log directory offline, and answers KAFKA_STORAGE_ERROR; if it is the first or only one,
        the broker has failed. To get it back, `remove()` the rule, which gives the space back, and restart the broker.
        """
        return self._add(DiskFull(after, path, optional=optional))

    def io_error(
        self,
        path: str | None = None,
        on: str = "write",
        nth: int = 1,
        error: int | str = errno.EIO,
        *,
        optional: bool = False,
    ) -> Rule:
        """Fail one operation, the `nth` write, sync or read from now on, of the files that `path` fits.

        `error` is a number of `errno` or its name. After EIO the broker takes its log directory offline, as after
        `disk_full`, and a restart gets it back: the rule is used up by then. A large part of a file that answers a
        Fetch is read while it is sent: then only the connection is closed.
        """
        return self._add(IoError(on, nth, error, path, optional=optional))

    def slow_disk(self, ms: float, on: str | None = None, path: str | None = None, *, optional: bool = False) -> Rule:
        """Make each write, sync or read (None: all) of the files that `path` fits take `ms` milliseconds longer.

        It takes them where a slow disk does. A small append is written by the event loop, so it holds up all clients;
        so does a small read. Large appends and syncs are done by threads.
        """
        return self._add(SlowDisk(ms, on, path, optional=optional))

    # -------------------------------------------------------------------------------------------------------- the rules

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that were made and not removed, the oldest first."""
        return tuple(self._rules)

    def unused(self) -> list[Rule]:
        """The rules since the last `clear`, removed or not, that were never hit and are not optional."""
        return [rule for rule in self._made if not rule.hits and not rule.optional]

    def clear(self) -> None:
        """Remove all rules and forget them. Requests that they hold back go on."""
        for rule in self.rules:
            rule.remove()
        self._made.clear()

    def _attach(self) -> None:
        """Apply the rules to another run of the broker."""
        self._remove_interceptors()
        self._install()

    def _add(self, rule: _R) -> _R:
        rule.on_remove = self._remove
        self._made.append(rule)
        self._rules.append(rule)
        self._apply()
        return rule

    def _remove(self, rule: Rule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)
            self._apply()
            rule.release()

    def _apply(self) -> None:
        """Apply changed rules: an API without rules gets the function of its handler back."""
        self._requests.rules = [rule for rule in self._rules if isinstance(rule, RequestRule)]
        self._disk.rules = tuple(rule for rule in self._rules if isinstance(rule, DiskRule))
        if not self._requests.rules:
            self._requests.unmute()
        self._remove_interceptors()
        self._install()

    def _install(self) -> None:
        """Add what the rules need to the running broker; to one that does not run, nothing."""
        try:
            routes = self._broker.routes
        except RuntimeError:
            self._disk.shadow(())
            return
        self._interceptors = []
        if self._disk.concerns_reads:
            self._interceptors.append(self._disk.intercept)
        if self._requests.rules:
            self._interceptors.append(self._requests.intercept)
        for interceptor in self._interceptors:
            routes.add_interceptor(interceptor)
        self._routes = routes
        directories = self._broker.log_dirs.directories if self._disk.rules else ()
        self._disk.shadow(directory.resources.descriptors.files for directory in directories)

    def _remove_interceptors(self) -> None:
        for interceptor in self._interceptors:
            assert self._routes is not None
            self._routes.remove_interceptor(interceptor)
        self._interceptors = []
