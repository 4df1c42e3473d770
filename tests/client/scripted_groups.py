"""The group coordinator of a scripted network: the broker's own handlers and group state machines, on virtual time.

```
request ─► handler of the broker ─► submit ─► GroupCoordinatorShard ─► records ─► `log`, replayed at once
                                                                    └► timers of the event loop
move(): another broker has the group; it begins with what the log says, as a coordinator that loads its partition
```
Nothing is lost or delayed here: that is up to the network.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.consumer_group.group import ConsumerGroup
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.group_shard import GroupCoordinatorShard
from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER, MetadataChanged
from odradek.broker.coordinator.migration import Migration
from odradek.broker.coordinator.runtime.events import Effects, Event, PendingReply, TimerExpired, TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.handlers import (
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.protocol.api import Api, by_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Message

HANDLERS: Mapping[str, ModuleType] = {
    "JoinGroup": join_group,
    "SyncGroup": sync_group,
    "Heartbeat": heartbeat,
    "LeaveGroup": leave_group,
    "OffsetCommit": offset_commit,
    "OffsetFetch": offset_fetch,
    "ConsumerGroupHeartbeat": consumer_group_heartbeat,
}
LAST_VERSIONS = {"OffsetCommit": 9, "OffsetFetch": 9}
"""Of the APIs whose later versions the client does not use; of the others the last one."""

_MODULES = {by_name(name).request: module for name, module in HANDLERS.items()}
_APIS = {by_name(name).request: by_name(name) for name in HANDLERS}


class GroupCoordinator:
    """All groups of a scripted network. `node_id` is the broker that has them.

    `on_session_end` is called with the id of each member that was removed because it was silent.
    """

    def __init__(
        self,
        *,
        session_timeout_ms: int = 6000,
        heartbeat_interval_ms: int = 1000,
        initial_rebalance_delay_ms: int = 0,
    ) -> None:
        settings = ConsumerGroupSettings(
            session_timeout_ms=session_timeout_ms, heartbeat_interval_ms=heartbeat_interval_ms, assignment_interval_ms=0
        )
        self.node_id = 1
        self.log: list[CoordinatorRecord] = []
        self.on_session_end: Callable[[str], object] = lambda _: None
        self.metadata = SimpleNamespace(image=MetadataImage(), randomness=self)
        self.config = BrokerConfig.load(overrides={"log.dirs": "unused", "group.min.session.timeout.ms": "1"})
        self.authorizer = None
        self._migration = Migration(
            lambda _: settings, ClassicSettings(initial_rebalance_delay_ms), lambda: self.metadata.image
        )
        self._draw = random.Random(0)
        self._timers: dict[tuple[str, TimerKey], asyncio.TimerHandle] = {}
        self.shard = self._new_shard()

    def _new_shard(self) -> GroupCoordinatorShard:
        return GroupCoordinatorShard({CLASSIC: self._migration.classic_group, CONSUMER: self._migration.consumer_group})

    # What the handlers take for the services of a broker.

    @property
    def groups(self) -> GroupCoordinator:
        return self

    @property
    def clock(self) -> GroupCoordinator:
        return self

    @property
    def threads(self) -> GroupCoordinator:
        return self

    def time_ms(self) -> int:
        return 1_000_000 + round(asyncio.get_running_loop().time() * 1000)

    def uuid(self) -> bytes:
        return self._draw.randbytes(16)

    def new_uuid(self) -> str:
        return self.uuid().hex()

    async def compile(self, function: Callable[[str], object], text: str) -> object:
        return function(text)

    def shard_of(self, group_id: str) -> GroupCoordinatorShard:
        return self.shard

    def submit(self, group_id: str, event: Event) -> Any:
        self._handle(group_id, event)
        return event.pending_reply.result(asyncio.get_running_loop().create_future)

    # What a network calls.

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The first and the last version of each API, which are the same: handlers are told this one."""
        return {api.key: (version, version) for api in _APIS.values() for version in [_version(api)]}

    def serves(self, request: Any) -> bool:
        return request.__class__ in _APIS

    async def serve(self, node_id: int, request: Any) -> Message:
        """The response of this broker to a request about a group."""
        if node_id != self.node_id:
            return self.refusal(request, ErrorCode.NOT_COORDINATOR)
        api = _APIS[request.__class__]
        connection = ConnectionContext("", ("", 0), ("127.0.0.1", 1))
        context = RequestContext(api.key, _version(api), 0, "client", 0.0, connection)
        try:
            answer = _MODULES[request.__class__].handle(self, context, request)
            if isinstance(answer, Generator):
                answer = _finish(answer)
            return answer if isinstance(answer, Message) else await answer
        except KafkaError as error:
            return self.refusal(request, error.code)

    def refusal(self, request: Any, code: ErrorCode) -> Message:
        """The response with this error."""
        response: Message = _MODULES[request.__class__].error_response(request, code, "")
        return response

    def topics_changed(self, topics: Mapping[str, tuple[bytes, int]]) -> None:
        """Take these topics, with id and number of partitions, for all that there are."""
        before, partition = self.metadata.image.topics, PartitionImage(1, 0, [1], {1: 1}, 0)
        now = {name: TopicImage(name, topic_id, [partition] * count) for name, (topic_id, count) in topics.items()}
        by_id = {topic.topic_id: topic for topic in now.values()}
        self.metadata.image = MetadataImage(self.metadata.image.revision + 1, topics=now, topics_by_id=by_id)
        changed = MetadataChanged(frozenset(now), has_new_topics=bool(now.keys() - before.keys()))
        for group_id, group in tuple(self.shard.groups.items()):
            if group.follows_metadata:
                self._handle(group_id, changed)

    def move(self, node_id: int) -> None:
        """Move the groups to another broker: requests that wait are answered NOT_COORDINATOR."""
        self.node_id = node_id
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for effects in self.shard.unloaded():
            _reply(effects)
        self.shard = self._new_shard()
        for offset, record in enumerate(self.log):
            self.shard.replay(record, offset, self.time_ms())
        for group_id, effects in tuple(self.shard.loaded(self.time_ms())):
            self._complete(group_id, effects)

    def end_session(self, group_id: str, member_id: str) -> None:
        """Remove a member as if it had been silent."""
        self._handle(group_id, TimerExpired(("session", member_id)))

    def members(self, group_id: str) -> set[str]:
        """The ids of the members of a group."""
        match self.shard.groups.get(group_id):
            case ClassicGroup() as group:
                return {member.member_id for member in group.members}
            case ConsumerGroup() as group:
                return set(group.group_state.members)
        return set()

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """The committed offset, or None."""
        found = self.shard.offsets.get(group_id, topic, partition)
        return None if found is None else found.offset

    # The runtime of the state machines.

    def _handle(self, group_id: str, event: Any) -> None:
        try:
            effects = self.shard.handle(group_id, event, self.time_ms())
        except KafkaError as error:
            if isinstance(event, Event):
                event.pending_reply.complete(error)
            return
        self._complete(group_id, effects)

    def _complete(self, group_id: str, effects: Effects) -> None:
        for record in effects.records:
            self.log.append(record)
            if effects.replay_records:
                self.shard.replay(record, len(self.log), self.time_ms())
        self.shard.event_completed(group_id, effects, None)
        for key, delay_ms in effects.timers.items():
            self._set_timer(group_id, key, delay_ms)
        _reply(effects)
        if effects.work is not None:
            self._handle(group_id, effects.work())
        if effects.follow_up is not None:
            now_ms = self.time_ms()
            self._complete(group_id, self.shard.append_completed(group_id, effects.follow_up, None, now_ms))

    def _set_timer(self, group_id: str, key: TimerKey, delay_ms: int | None) -> None:
        timer = self._timers.pop((group_id, key), None)
        if timer is not None:
            timer.cancel()
        if delay_ms is not None:
            loop = asyncio.get_running_loop()
            self._timers[group_id, key] = loop.call_later(delay_ms / 1000, self._timer_expired, group_id, key)

    def _timer_expired(self, group_id: str, key: TimerKey) -> None:
        del self._timers[group_id, key]
        before = self.members(group_id)
        self._handle(group_id, TimerExpired(key))
        if key[0] == "session":
            for member_id in before - self.members(group_id):
                self.on_session_end(member_id)


def _version(api: Api) -> int:
    return LAST_VERSIONS.get(api.name, api.max_version)


def _finish(steps: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _reply(effects: Effects) -> None:
    pending: PendingReply
    for pending, reply in effects.replies:
        pending.complete(reply)
