"""What must hold at any time in a group of simulated users.

| rule | checked |
|---|---|
| no partition has two owners | when one is assigned, when a record is returned, and every 50 ms |
| what a consumer owns is what its listener was told | after each call of the user that ended |
| records of a partition are returned in order, from the committed offset on | for each record |
| a committed offset is that of a returned record, and never falls | for each commit that the coordinator accepts |
| no session ends of a member whose requests arrive | for each session that the coordinator ends |
| every call ends by its limit | for each call |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from odradek.client import ConsumerRecord, TopicPartition
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tests.client.scripted_groups import GroupCoordinator

if TYPE_CHECKING:
    from tests.client.simulation.user import User

GROUP = "g"
SESSION_S = 6.0


class Invariants:
    """The checks of one run. `failures` are the contradictions that were found, `trace` what happened before."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self.failures: list[str] = []
        self.trace: list[str] = []
        self.users: list[User] = []
        self.records = self.commits = self.assignments = 0
        self._coordinator = coordinator
        self._loop = asyncio.get_running_loop()
        self._committed: dict[TopicPartition, int] = {}
        coordinator.on_session_end = self._session_ended

    def note(self, text: str) -> None:
        self.trace.append(f"{self._loop.time():8.3f} {text}")

    def fail(self, text: str) -> None:
        self.note(f"FAILURE {text}")
        self.failures.append(f"{self._loop.time():.3f} {text}")

    def loop_failed(self, _: object, context: dict[str, Any]) -> None:
        """An exception handler of the loop: no task's exception is lost."""
        self.fail(f"{context['message']}: {context.get('exception')!r}")

    # Owners.

    def check_owners(self) -> None:
        members = self._coordinator.members(GROUP)
        owners: dict[TopicPartition, str] = {}
        for user in self.users:
            for partition in user.owned_as_a_member(members):
                other = owners.setdefault(partition, user.name)
                if other != user.name:
                    self.fail(f"{other} and {user.name} own {partition}")

    async def watch(self) -> None:
        """Check the owners again and again."""
        while not self.failures:
            self.check_owners()
            await asyncio.sleep(0.05)

    def _session_ended(self, member_id: str) -> None:
        for user in self.users:
            member = user.member
            if member is None or member.member_id != member_id or member.generation == NO_GENERATION:
                continue
            if user.reachable_for() > SESSION_S:
                self.fail(f"the session of {user.name} ended, which was a member and reached the coordinator")

    # Records and commits.

    def returned(self, user: User, records: Iterable[ConsumerRecord]) -> None:
        """Check the records that a poll has returned."""
        for record in records:
            self.records += 1
            partition = TopicPartition(record.topic, record.partition)
            expected = user.next_offsets.get(partition)
            if expected is None:
                committed = self._coordinator.committed(GROUP, *partition) or 0
                if record.offset > committed:
                    self.fail(f"{user.name} begins {partition} at {record.offset}, where {committed} is committed")
            elif record.offset != expected:
                self.fail(f"{user.name} got {record.offset} of {partition}, not {expected}")
            user.next_offsets[partition] = record.offset + 1
            user.highest[partition] = max(record.offset + 1, user.highest.get(partition, 0))

    def committing(self, user: User, request: OffsetCommitRequest, response: OffsetCommitResponse) -> None:
        """Check a commit that the coordinator has answered."""
        rows = {
            TopicPartition(topic.name, row.partition_index): row.committed_offset
            for topic in request.topics
            for row in topic.partitions
        }
        errors = [row.error_code for topic in response.topics for row in topic.partitions]
        if any(errors):
            return
        self.commits += 1
        as_a_member = request.generation_id_or_member_epoch != NO_GENERATION
        for partition, offset in rows.items():
            before = self._committed.get(partition, 0)
            if offset > max(user.highest.get(partition, 0), before):
                self.fail(f"{user.name} committed {offset} of {partition}, which was not returned")
            if as_a_member and offset < before:
                self.fail(f"{user.name} committed {offset} of {partition} after {before}")
            self._committed[partition] = offset

    # Calls.

    async def within(self, what: str, limit_s: float, call: Callable[[], Any]) -> Any:
        """Await a call, which must end within its limit."""
        begun = self._loop.time()
        try:
            async with asyncio.timeout(limit_s + 60):
                return await call()
        finally:
            took = self._loop.time() - begun
            if took > limit_s + 0.001:
                self.fail(f"{what} took {took:.3f} s, more than {limit_s} s")
