"""The faults of a simulated network, drawn at random, until `stop`.

| fault | how often |
|---|---|
| a request is delayed | each, mostly for less than 50 ms |
| a request, or its response, is lost with the connection | 4 % |
| a request about the group is refused | 5 %: any retriable error, a session that has just ended, a fatal error |
| all requests of a user are held for longer than a session | every minute or so |
| a broker is away for a few seconds; the groups move to the other one; partitions and topics are added | each |
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest
from tests.client.reading import fill
from tests.client.scripted_broker import DROP, Answer, Broker
from tests.client.scripted_groups import GroupCoordinator
from tests.client.scripted_network import ScriptedNetwork
from tests.client.simulation.invariants import GROUP, SESSION_S, Invariants
from tests.client.simulation.user import USER, User

_LOADING, _MOVED, _AWAY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
_FATAL = ErrorCode.GROUP_AUTHORIZATION_FAILED
REFUSALS: dict[type, list[ErrorCode]] = {
    JoinGroupRequest: [
        _LOADING,
        _MOVED,
        _AWAY,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        _FATAL,
    ],
    SyncGroupRequest: [_LOADING, _MOVED, _AWAY, ErrorCode.REBALANCE_IN_PROGRESS, _FATAL],
    HeartbeatRequest: [_LOADING, _MOVED, _AWAY, ErrorCode.REBALANCE_IN_PROGRESS, _FATAL],
    LeaveGroupRequest: [_LOADING, _MOVED, _AWAY, _FATAL],
    OffsetCommitRequest: [_LOADING, _MOVED, _AWAY, ErrorCode.REQUEST_TIMED_OUT, _FATAL],
    OffsetFetchRequest: [_LOADING, _MOVED, _AWAY, ErrorCode.UNSTABLE_OFFSET_COMMIT, _FATAL],
    ConsumerGroupHeartbeatRequest: [_LOADING, _MOVED, _AWAY, ErrorCode.GROUP_MAX_SIZE_REACHED, _FATAL],
}
"""Errors of the coordinator that say nothing about the membership."""


class Faults:
    """The faults of one run."""

    def __init__(
        self, seed: int, network: ScriptedNetwork, coordinator: GroupCoordinator, invariants: Invariants
    ) -> None:
        self._draw = random.Random(f"{seed}/faults")
        self._network = network
        self._coordinator = coordinator
        self._invariants = invariants
        self._is_over = False
        network.disturbance = self._serve

    def stop(self) -> None:
        self._is_over = True
        for broker in self._network.brokers.values():
            broker.come_up()
        for user in self._invariants.users:
            user.is_cut = False

    # Single requests.

    async def _serve(self, broker: Broker, request: Any) -> Answer:
        user, draw = USER.get(), self._draw
        await asyncio.sleep(draw.uniform(0, 0.02))
        if not self._is_over and draw.random() < 0.02:
            await asyncio.sleep(draw.uniform(0, 1))
        while user.is_cut:
            user.disturbed()
            await asyncio.sleep(0.25)
        chance = 1.0 if self._is_over else draw.random()
        if chance < 0.02:
            user.disturbed()
            return DROP
        if chance < 0.09 and self._coordinator.serves(request):
            return await self._refused(user, broker, request)
        answer = await self._served(user, broker, request)
        if chance > 0.98 and not self._is_over:
            user.disturbed()
            return DROP
        return answer

    async def _refused(self, user: User, broker: Broker, request: Any) -> Answer:
        user.disturbed()
        member_id = getattr(request, "member_id", "")
        if self._draw.random() < 0.15 and member_id in self._coordinator.members(GROUP):
            self._invariants.note(f"the session of {user.name} is ended")
            self._coordinator.end_session(GROUP, member_id)
            return await self._served(user, broker, request)
        codes = REFUSALS[request.__class__]
        code = self._draw.choice(codes) if self._draw.random() < 0.3 else self._draw.choice(codes[:3])
        self._invariants.note(f"{request.__class__.__name__} of {user.name} is refused: {code.name}")
        return self._coordinator.refusal(request, code)

    async def _served(self, user: User, broker: Broker, request: Any) -> Answer:
        answer = await broker.serve(request)
        if isinstance(request, OffsetCommitRequest):
            assert isinstance(answer, OffsetCommitResponse)
            self._invariants.committing(user, request, answer)
        if self._coordinator.serves(request):
            self._invariants.note(f"  {user.name} {_short(request)}: {_short(answer)}")
        return answer

    # The cluster.

    async def run(self, until: float) -> None:
        """Disturb the cluster until this time, and write records."""
        loop, draw = asyncio.get_running_loop(), self._draw
        while loop.time() < until:
            await asyncio.sleep(draw.uniform(0.2, 3))
            chance = draw.random()
            if chance < 0.5:
                self._write()
            elif chance < 0.58:
                await self._cut()
            elif chance < 0.66:
                await self._stop_broker()
            elif chance < 0.74:
                node_id = 3 - self._coordinator.node_id
                self._invariants.note(f"the groups move to broker {node_id}")
                self._coordinator.move(node_id)
            elif chance < 0.80:
                self._grow()

    def _write(self) -> None:
        log = self._draw.choice(list(self._network.logs.values()))
        fill(log, 10)
        appended, log.appended = log.appended, asyncio.Event()
        appended.set()

    async def _cut(self) -> None:
        user = self._draw.choice(self._invariants.users)
        self._invariants.note(f"{user.name} is cut off")
        user.is_cut = True
        await asyncio.sleep(self._draw.choice([1.0, SESSION_S / 2, SESSION_S * 1.5]))
        user.is_cut = False
        self._invariants.note(f"{user.name} is not cut off any more")

    async def _stop_broker(self) -> None:
        broker = self._draw.choice(list(self._network.brokers.values()))
        self._invariants.note(f"broker {broker.node_id} is away")
        for user in self._invariants.users:
            user.disturbed()
        broker.go_down()
        await asyncio.sleep(self._draw.choice([0.1, 2.0]))
        broker.come_up()
        for user in self._invariants.users:
            user.disturbed()
        self._invariants.note(f"broker {broker.node_id} is back")

    def _grow(self) -> None:
        name = self._draw.choice(["a", "b", "a2"])
        count = len(self._network.partitions(name))
        if count < 5:
            self._invariants.note(f"{name} gets partition {count}")
            for log in self._network.add_partitions(name, count + 1)[count:]:
                fill(log, 20)


def _short(message: Any) -> str:
    words = [message.__class__.__name__]
    for name in ("error_code", "member_id", "member_epoch", "generation_id", "topic_partitions", "assignment"):
        value = getattr(message, name, None)
        if value not in (None, "", 0, b""):
            words.append(f"{name}={value}")
    return " ".join(words)[:300]
