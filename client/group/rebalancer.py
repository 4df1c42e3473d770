"""The interface between `group` and the two protocols: a member, and how it comes to own partitions."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Protocol, TypeVar

from odradek.client.config import ConsumerConfig
from odradek.client.errors import ClientError
from odradek.client.network.backoff import retried

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


class ErrorAction(Enum):
    """The reaction of a member to an error of the coordinator."""

    RETRY = "repeat the request"
    REJOIN = "join again with the same id"
    NEW_MEMBER = "join again as a new member"
    FATAL = "raise the error"


class Member(Protocol):
    """The identity of a member at the coordinator."""

    member_id: str
    generation: int  # or member epoch; NO_GENERATION outside of the group

    async def leave(self, reason: str) -> None:
        """Leave the group at once, as far as the protocol allows it. Raises ClientError."""
        ...

    def forget(self) -> None:
        """Reset the membership without a request: the coordinator has ended it."""
        ...


class Rebalancer(Protocol):
    """One protocol's way to join, to keep the membership and to change what the member owns."""

    @property
    def member(self) -> Member: ...

    @property
    def heartbeat_interval(self) -> float:
        """Seconds between heartbeats."""
        ...

    def subscribe(self, topics: frozenset[str], pattern: re.Pattern[str] | None) -> None:
        """Set the topics, or the pattern, of the next join."""
        ...

    async def rejoin(self) -> bool:
        """Join or reconcile, and own the assigned partitions afterwards. Returns whether another call must follow.

        Raises ClientError, what the listener raises, and JoinAbandonedError.
        """
        ...

    async def heartbeat(self) -> None:
        """Send a heartbeat, and request a join if there is a reason for one. Raises ClientError."""
        ...

    async def keep_alive(self) -> None:
        """Send a heartbeat that changes nothing, while the listener runs during `rejoin`. Raises ClientError."""
        ...

    def handle_error(self, error: ClientError) -> ErrorAction:
        """Handle an error of a heartbeat, and return what the group must do."""
        ...


async def until_answered(config: ConsumerConfig, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat a look-up of a join until a broker answers, as the requests to the coordinator are repeated.

    Raises ClientError if it cannot be retried.
    """

    def is_retriable(error: ClientError) -> bool:
        if error.retriable:
            _LOG.info("%s", error)
        return error.retriable

    return await retried(config, attempt, is_retriable)
