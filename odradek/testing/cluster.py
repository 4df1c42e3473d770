"""What a handle needs of a cluster: `OwnBroker`, `OwnNames` and `ExactNames` are the three."""

from __future__ import annotations

from typing import Protocol

from odradek.testing.clients import Clients


class Cluster(Protocol):
    """A cluster under test. Its coroutines run on the loop of the handle, with the clients of the handle."""

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers."""
        ...

    def real_name(self, topic: str) -> str:
        """Return the name that a topic of a test has in the cluster."""
        ...

    async def name_to_create(self, topic: str, clients: Clients) -> str:
        """Return the name for a topic that a test wants, which is `real_name` from then on.

        A topic of the returned name, if it exists, belongs to the tests. Raises ValueError if this one does not, and
        ClientError.
        """
        ...

    async def mistakes(self, clients: Clients) -> list[str]:
        """Describe the topics that the program took for those of the test. Raises ClientError."""
        ...

    def time_ms(self) -> int | None:
        """Return the time of the broker's clock (ms since the epoch) if a test has moved it, else None."""
        ...

    async def begin_session(self, clients: Clients) -> None:
        """Take note of what the cluster has before the first topic of the tests. Raises ClientError."""
        ...

    async def begin_test(self, clients: Clients) -> None:
        """Take what is there as the state that each test begins with, at the first call. Raises ClientError."""
        ...

    async def end_test(self, clients: Clients) -> None:
        """Remove what the test has left, so that the next one finds the state of its beginning. Raises ClientError."""
        ...

    async def end_session(self, clients: Clients) -> None:
        """Remove what the session has left in a cluster that goes on. Raises ClientError."""
        ...

    @property
    def changes(self) -> int:
        """A number that grows when something may have changed."""
        ...

    async def change(self, since: int) -> None:
        """Return when `changes` is no longer `since`, and after a fraction of a second, because timers change, too."""
        ...

    def report_lines(self) -> list[str]:
        """Describe the last requests, or why they are not known, and the rules of faults."""
        ...

    def unused_rules(self) -> list[str]:
        """Describe the rules of faults that the test made and never hit."""
        ...

    def close(self) -> None:
        """Release everything. A second call does nothing."""
        ...
