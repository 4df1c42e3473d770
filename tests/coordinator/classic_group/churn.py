"""Consumers of a classic group in simulated time, which join, read, commit, leave, freeze and die at random by a seed.

Every client looks after itself once a second: it joins, or sends a heartbeat, reads from the partitions that it has and
commits. Requests and replies take no time; a parked request is answered when the group answers it. Whatever a client
processes is counted, and who is given a partition in a generation is remembered.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.runtime.events import Effects, PendingReply, TimerExpired, TimerKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

SECOND = 1000
SESSION_MS, REBALANCE_MS = 10_000, 20_000
READ_AT_ONCE = 20
COMMITS = 0.3
"""The probability that a client commits its positions, each second."""


class Client:
    """A consumer with its own view of the group. It is frozen until `wakes_at`; None: dead."""

    def __init__(self, name: str, instance_id: str | None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.wakes_at: int | None = 0
        self.forget()

    def forget(self) -> None:
        """Start again as a new process."""
        self.member_id = ""
        self.generation_id = -1
        self.positions: dict[int, int] = {}
        self.waiting: PendingReply | None = None


class ClassicChurn:
    """The group, its clients, a topic that grows, and the time."""

    def __init__(self, seed: int, clients: int, partitions: int = 40) -> None:
        self.random = random.Random(seed)
        self.now_ms = 1_000_000
        self.group = ClassicGroup("g", ClassicSettings(SECOND), self.now_ms)
        self.clients = [Client(f"c{n}", f"i{n}" if n % 5 == 0 else None) for n in range(clients)]
        self.ends = dict.fromkeys(range(partitions), 0)
        self.committed: dict[int, int] = {}
        self.processed: Counter[tuple[int, int]] = Counter()
        self.owners: dict[tuple[int, int], str] = {}  # by generation and partition
        self._timers: dict[TimerKey, int] = {}
        self._asked: dict[PendingReply, Client] = {}
        self._ids = 0

    def run(self, milliseconds: int, mishaps: float) -> None:
        """Advance the time second by second; `mishaps` is the probability of an accident for a client in each."""
        for _ in range(milliseconds // SECOND):
            self._expire(self.now_ms + SECOND)
            for index in self.ends:
                self.ends[index] += self.random.randrange(3)
            for client in self.random.sample(self.clients, len(self.clients)):
                if self.random.random() < mishaps:
                    self._mishap(client)
                if client.wakes_at is not None and client.wakes_at <= self.now_ms:
                    self._live(client)

    def revive(self) -> None:
        """Revive every client."""
        for client in self.clients:
            if client.wakes_at is None:
                client.forget()
            client.wakes_at = self.now_ms

    # --------------------------------------------------------------------------------------------------------- clients

    def _mishap(self, client: Client) -> None:
        what = self.random.choice(["leave", "freeze", "die", "be born"])
        if what == "freeze" and client.wakes_at is not None:
            client.wakes_at = self.now_ms + self.random.randrange(60) * SECOND
        elif what == "die":
            client.wakes_at = None
        elif what == "be born" and client.wakes_at is None:
            client.forget()
            client.wakes_at = self.now_ms
        elif what == "leave" and client.wakes_at is not None and client.member_id:
            self._handle(Leave(PendingReply(), (Leaving(client.member_id, client.instance_id, ""),)))
            client.forget()
            client.wakes_at = None

    def _live(self, client: Client) -> None:
        if client.waiting is not None:
            return
        if client.generation_id < 0:
            self._join(client)
            return
        self._read(client)  # before it learns whether the partitions are still its own
        if self.random.random() < COMMITS:
            self._commit(client)
        error = self._heartbeat(client)
        if error is ErrorCode.NONE:
            return
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._commit(client)
            self._join(client)
        else:
            client.forget()

    def _join(self, client: Client) -> None:
        self._ids += 1
        client.waiting = PendingReply()
        self._asked[client.waiting] = client
        join = Join(
            client.waiting,
            member_id=client.member_id,
            new_member_id=f"{client.name}-{self._ids}",
            group_instance_id=client.instance_id,
            client_id=client.name,
            client_host="/127.0.0.1",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),),
            reason="",
            requires_known_member_id=True,
            may_skip_assignment=False,
        )
        self._handle(join)

    def _heartbeat(self, client: Client) -> ErrorCode:
        heartbeat = Heartbeat(PendingReply(), client.generation_id, client.member_id, client.instance_id)
        [(_, reply)] = self._handle(heartbeat).replies
        return ErrorCode(reply.error_code)  # type: ignore[union-attr]

    def _read(self, client: Client) -> None:
        for index, position in client.positions.items():
            end = min(position + READ_AT_ONCE, self.ends[index])
            self.processed.update((index, offset) for offset in range(position, end))
            client.positions[index] = end

    def _commit(self, client: Client) -> None:
        committer = Committer(client.member_id, client.instance_id, client.generation_id, 9, is_transactional=False)
        try:
            self._set_timers(self.group.check_commit(committer, []))
        except KafkaError:
            return
        self.committed.update(client.positions)

    # ----------------------------------------------------------------------------------------------------------- group

    def _handle(self, event: Any) -> Effects:
        effects = self.group.handle(event, self.now_ms)
        self._take(effects)
        return effects

    def _take(self, effects: Effects) -> None:
        self._set_timers(effects.timers)
        for pending_reply, reply in effects.replies:
            client = self._asked.pop(pending_reply, None)
            if client is not None and client.waiting is pending_reply:
                client.waiting = None
                self._answered(client, reply)
        if effects.follow_up is not None:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE if self.random.random() < 0.02 else None
            self._take(self.group.append_completed(effects.follow_up, error, self.now_ms))

    def _answered(self, client: Client, reply: Any) -> None:
        if isinstance(reply, JoinGroupResponse):
            self._joined(client, reply)
        elif isinstance(reply, SyncGroupResponse):
            if reply.error_code != ErrorCode.NONE:
                client.generation_id = -1
                return
            partitions = [int(part) for part in bytes(reply.assignment).split()]
            client.positions = {index: self.committed.get(index, 0) for index in partitions}
            for index in partitions:
                owner = self.owners.setdefault((client.generation_id, index), client.name)
                assert owner == client.name, (client.generation_id, index, owner, client.name)

    def _joined(self, client: Client, reply: JoinGroupResponse) -> None:
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = reply.member_id
        elif reply.error_code != ErrorCode.NONE:
            client.forget()
        else:
            client.member_id, client.generation_id = reply.member_id, reply.generation_id
            members = sorted(member.member_id for member in reply.members)
            # As the range assignor does; only the leader gets the members.
            shares = {each: b" ".join(b"%d" % index for index in list(self.ends)[at :: len(members)])
                      for at, each in enumerate(members)}  # fmt: skip
            client.waiting = PendingReply()
            self._asked[client.waiting] = client
            instance = client.instance_id
            self._handle(Sync(client.waiting, reply.generation_id, reply.member_id, instance, None, None, shares))

    def _set_timers(self, timers: dict[TimerKey, int | None]) -> None:
        for key, delay_ms in timers.items():
            self._timers.pop(key, None)
            if delay_ms is not None:
                self._timers[key] = self.now_ms + delay_ms

    def _expire(self, until_ms: int) -> None:
        while due := [key for key, deadline in self._timers.items() if deadline <= until_ms]:
            key = min(due, key=self._timers.__getitem__)
            self.now_ms = max(self.now_ms, self._timers.pop(key))
            self._handle(TimerExpired(key))
        self.now_ms = until_ms
