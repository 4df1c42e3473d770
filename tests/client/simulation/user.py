"""A program with a consumer, drawn at random: its calls, its listener, and the cancellations of its calls."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import ContextVar
from typing import Any

from odradek.client import ClientError, ClosedError, Consumer, RebalanceListener, TopicPartition
from odradek.client.errors import BrokerError, ConfigurationError, UnknownTopicError
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.rebalancer import Member
from odradek.protocol.errors import ErrorCode
from tests.client.scripted_network import ScriptedNetwork
from tests.client.simulation.invariants import GROUP, SESSION_S, Invariants

USER: ContextVar[User] = ContextVar("USER")
"""Whose program runs here; also in the tasks of its consumer and of its connections."""

API_S, REQUEST_S, MAX_POLL_S, LISTENER_S = 120.0, 5.0, 20.0, 4.0

PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}
INJECTED = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_MAX_SIZE_REACHED})
"""Fatal errors that the coordinator may answer."""
_TO_COMMITS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
"""Errors of commits of a member that was removed, or must join again."""

BESIDE_A_POLL = frozenset({"unsubscribe", "close"})
"""Calls that may be made while another task polls."""

Topics = list[str] | re.Pattern[str]

TOPICS: list[list[str]] = [["a"], ["b"], ["a", "b"]]


class UserError(Exception):
    """Raised by a listener."""


class Listener(RebalanceListener):
    """What a consumer owns according to its calls. While `user.is_wild`, calls are slow, fail, or unsubscribe."""

    def __init__(self, user: User) -> None:
        self.owned: set[TopicPartition] = set()
        self._user = user

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        user = self._user
        user.note(f"on_assigned {_text(partitions)}")
        user.invariants.assignments += 1
        self.owned |= set(partitions)
        for partition in partitions:
            user.next_offsets.pop(partition, None)
        user.invariants.check_owners()
        await self._act()

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._user.note(f"on_revoked {_text(partitions)}")
        await self._act()
        self.owned -= set(partitions)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._user.note(f"on_lost {_text(partitions)}")
        await self._act()
        self.owned -= set(partitions)

    async def _act(self) -> None:
        user, draw = self._user, self._user.draw
        chance = draw.random()
        if not user.is_wild or chance < 0.6:
            return
        if chance < 0.8:
            await asyncio.sleep(draw.uniform(0, LISTENER_S))
        elif chance < 0.9:
            user.note("listener raises")
            raise UserError
        elif chance < 0.95:
            user.note("listener commits")
            await user.tolerating(user.consumer.commit)
        elif not user.is_closing:
            user.note("listener unsubscribes")
            self.owned.clear()
            await user.consumer.unsubscribe()
            user.wanted = [[]]


class User:
    """One program. `wanted` are the subscriptions of which one holds: several after a call that did not end."""

    def __init__(
        self, number: int, seed: int, network: ScriptedNetwork, invariants: Invariants, settings: dict[str, Any]
    ) -> None:
        self.name = f"user{number}"
        self.draw = random.Random(f"{seed}/{number}")
        self.invariants = invariants
        self.is_wild = True
        self.is_cut = False  # no request of its consumer arrives
        self.is_closing = False
        self.settles_since = float("inf")  # when it has subscribed to its last topics
        self.wanted: list[Topics] = [[]]
        self.next_offsets: dict[TopicPartition, int] = {}  # of each partition since it was assigned
        self.highest: dict[TopicPartition, int] = {}  # after the last record that was ever returned
        self._disturbed_at = 0.0
        self._network = network
        self._auto = self.draw.random() < 0.7
        self._settings = settings
        self.listener = Listener(self)
        self.consumer = self._new_consumer()

    def _new_consumer(self) -> Consumer:
        return Consumer(
            self._network.bootstrap,
            network=self._network,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=self._auto,
            auto_commit_interval_ms=1500,
            session_timeout_ms=round(SESSION_S * 1000),
            heartbeat_interval_ms=1000,
            max_poll_interval_ms=round(MAX_POLL_S * 1000),
            default_api_timeout_ms=round(API_S * 1000),
            request_timeout_ms=round(REQUEST_S * 1000),
            metadata_max_age_ms=3000,
            max_poll_records=7,
            **self._settings,
        )

    def note(self, text: str) -> None:
        self.invariants.note(f"{self.name} {text}")

    # What the invariants read.

    @property
    def member(self) -> Member | None:
        group = self.consumer._group
        return None if group is None else group._member

    def owned_as_a_member(self, members: Collection[str]) -> list[TopicPartition]:
        """What the consumer owns, if it is a member and has not been told otherwise."""
        group, member = self.consumer._group, self.member
        if group is None or member is None or not group.is_subscribed or group._owned.are_lost:
            return []
        if self.consumer._is_closed or member.generation == NO_GENERATION or member.member_id not in members:
            return []
        return self.consumer.assignment()

    def disturbed(self) -> None:
        """Record that a request of this consumer was not answered at once."""
        self._disturbed_at = asyncio.get_running_loop().time()

    def reachable_for(self) -> float:
        """Seconds since a request of this consumer was last lost or refused."""
        return 0.0 if self.is_cut else asyncio.get_running_loop().time() - self._disturbed_at

    # The program.

    async def run(self, until: float) -> None:
        """Call the consumer at random until this time."""
        loop = asyncio.get_running_loop()
        USER.set(self)
        await self._start()
        while loop.time() < until and not self.invariants.failures:
            name, call, limit_s = self._next_call()
            if name in BESIDE_A_POLL and self.draw.random() < 0.5:
                await self._call_beside_a_poll(name, call, limit_s)
            elif self.draw.random() < 0.15:
                await self._call_and_cancel(name, call, limit_s)
            else:
                await self._call(name, call, limit_s)
        self.is_wild = False

    async def settle(self, topics: list[str], is_over: Callable[[], bool]) -> None:
        """Subscribe to these topics, perhaps during a join to others, and poll until everything must have settled."""
        await self._start()  # if a start after a close was cancelled: each poll would raise at once, for ever
        others, timeout_ms = self.draw.choice(TOPICS), self.draw.choice([0, 0, 10, 100, 300])
        await self._call(f"subscribe {others}", lambda: self._subscribe(others), API_S)
        await self._call(f"poll {timeout_ms}", lambda: self._poll(timeout_ms), timeout_ms / 1000)
        await self._call(f"subscribe {topics} at last", lambda: self._subscribe(topics), API_S)
        self.settles_since = asyncio.get_running_loop().time()
        while not is_over() and not self.invariants.failures:
            await self._call("poll", lambda: self._poll(1000), 1.0)

    async def end(self) -> None:
        self.is_closing = True
        await self._call("close", self.consumer.close, self._longest)
        self.is_closing = False

    async def _start(self) -> None:
        while True:
            try:
                await self.consumer.start()
            except ClientError as error:
                if not error.retriable:
                    raise
                await asyncio.sleep(0.5)
            else:
                return

    @property
    def _longest(self) -> float:
        """How long a call may take that commits, calls the listener, and leaves."""
        return 4 * REQUEST_S + 2 * API_S + 3 * LISTENER_S

    def _next_call(self) -> tuple[str, Callable[[], Awaitable[Any]], float]:
        draw = self.draw
        chance = draw.random()
        if not self.consumer.assignment() and not self.is_subscribed and chance < 0.8:
            chance = draw.uniform(0.6, 0.72)
        if chance < 0.6:
            timeout_ms = draw.choice([0, 1, 10, 100, 300, 1000, 3000])
            return f"poll {timeout_ms}", lambda: self._poll(timeout_ms), timeout_ms / 1000
        if chance < 0.72:
            topics: Topics = draw.choice(
                [["a"], ["b"], ["a", "b"], ["a", "b"], re.compile("[ab].*"), re.compile("a.*")]
            )
            return f"subscribe {topics}", lambda: self._subscribe(topics), 0.0
        if chance < 0.76:
            return "unsubscribe", self._unsubscribe, self._longest
        if chance < 0.78:
            return "assign", self._assign, self._longest
        if chance < 0.86:
            return "commit", lambda: self.tolerating(self.consumer.commit), API_S
        if chance < 0.89:
            return "close", self._restart, self._longest + API_S
        seconds = draw.choice([0.1, 1.0, 3.0, 8.0, 8.0, MAX_POLL_S * 1.2])
        return f"work {seconds}", lambda: asyncio.sleep(seconds), seconds

    async def _call(self, name: str, call: Callable[[], Awaitable[Any]], limit_s: float) -> None:
        self.note(name)
        try:
            await self.invariants.within(f"{name} of {self.name}", limit_s, call)
        except UserError:
            self.note(f"{name} raised what the listener raised")
        except ClientError as error:
            self._check_error(name, error)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever else it is must not come
            self.invariants.fail(f"{name} of {self.name} raised {error!r}")
        self._check_assignment(name)

    async def _call_and_cancel(self, name: str, call: Callable[[], Awaitable[Any]], limit_s: float) -> None:
        task = asyncio.create_task(self._call(f"{name}, cancelled", call, limit_s))
        if self.draw.random() < 0.5:
            for _ in range(self.draw.randrange(40)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(self.draw.uniform(0, 2))
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
        self.note(f"{name} ended or cancelled")

    async def _call_beside_a_poll(self, name: str, call: Callable[[], Awaitable[Any]], limit_s: float) -> None:
        """Call while another task polls: the poll must neither join again nor go on for longer than it may."""
        poll = asyncio.create_task(self._call(f"poll 2000 beside {name}", lambda: self._poll(2000), 2.0))
        await asyncio.sleep(self.draw.choice([0.0, self.draw.uniform(0, 0.5)]))
        if self.draw.random() < 0.3:
            await self._call_and_cancel(name, call, limit_s)
        else:
            await self._call(name, call, limit_s)
        await poll

    def _check_error(self, name: str, error: ClientError) -> None:
        self.note(f"{name} raised {error!r}")
        if isinstance(error, BrokerError) and error.code in INJECTED:
            return
        if isinstance(error, ClosedError | ConfigurationError):
            return  # the listener has unsubscribed, or a cancelled close has closed it
        if isinstance(error, UnknownTopicError):
            return  # of a partition that is newer than the metadata: the next poll looks again
        self.invariants.fail(f"{name} of {self.name} raised {error!r}")

    async def tolerating(self, commit: Callable[[], Awaitable[Any]]) -> None:
        """Commit, unless the member was removed."""
        try:
            await commit()
        except BrokerError as error:
            if error.code not in _TO_COMMITS:
                raise

    def _check_assignment(self, name: str) -> None:
        group = self.consumer._group
        if group is None or not group.is_subscribed or self.consumer._is_closed:
            return
        if group._join_task is not None and not group._join_task.done():
            return  # in the middle of a change
        owned = set(self.consumer.assignment())
        if owned != self.listener.owned:
            told = _text(sorted(self.listener.owned))
            self.invariants.fail(f"{self.name} owns {_text(sorted(owned))} after {name}, its listener was told {told}")

    async def _poll(self, timeout_ms: int) -> None:
        records = await self.consumer.poll(timeout_ms)
        self.invariants.check_owners()
        self.invariants.returned(self, records)
        if records:
            self.note(f"got {len(records)} up to {records[-1].topic}-{records[-1].partition}@{records[-1].offset}")

    async def _subscribe(self, topics: Topics) -> None:
        if not self.is_subscribed:
            self.listener.owned.clear()
        self.wanted.append(topics)
        await self.consumer.subscribe(topics, self.listener)
        self.wanted = [topics]

    async def _unsubscribe(self) -> None:
        self.wanted.append([])
        await self.consumer.unsubscribe()
        self.wanted = [[]]
        if self.consumer.assignment():
            self.invariants.fail(f"{self.name} owns {self.consumer.assignment()} after it unsubscribed")

    async def _assign(self) -> None:
        await self._unsubscribe()
        self.next_offsets.clear()
        self.consumer.assign([("c", 0)])

    async def _restart(self) -> None:
        self.is_closing = True
        try:
            await self.consumer.close()
        finally:
            self.is_closing = False
            self.listener.owned.clear()
            self.next_offsets.clear()
            self.wanted = [[]]
            self.consumer = self._new_consumer()
            await self._start()

    @property
    def is_subscribed(self) -> bool:
        group = self.consumer._group
        return group is not None and group.is_subscribed


def _text(partitions: Collection[TopicPartition]) -> str:
    return ",".join(map(str, partitions)) or "nothing"
