"""Failed partitions of a Fetch, which may be in a session that the request does not repeat (KIP-227).

```
the request, and the partitions of its session
  └─ those that fail get a leader epoch that no leader has
       └─ the handler answers at once, with an error row for each, and the session records that they failed
            └─ their rows get the error of the rule, and their parts of the session the old epoch
```

So the session goes on exactly as after an error of the broker itself: the partition is news again when the error has
ended. A follower's fetch of a failed partition is not counted as progress.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from odradek.broker.replication.fetch.fetch_session import WantedPartition, wanted_partitions
from odradek.broker.replication.fetch.fetch_sessions import FetchSessions
from odradek.broker.request.services import Services
from odradek.broker.testing.faults.error_rows import CodeOf
from odradek.broker.testing.faults.topic_rows import Named, NameOfId
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.schema import Message

_NO_EPOCH_OF_A_LEADER: Final = 0x7FFFFFFF

Execute = Callable[[FetchRequest], Awaitable[Message | None]]
"""Calls the handler."""


def wanted_in(request: FetchRequest, sessions: FetchSessions) -> list[WantedPartition]:
    """The partitions that a Fetch reads: those that it names, and the others of its session."""
    wanted = wanted_partitions(request)
    if request.session_epoch <= 0:
        return wanted
    seen = {(each.topic, each.topic_id, each.request.partition) for each in wanted}
    seen.update(
        (forgotten.topic, forgotten.topic_id, index)
        for forgotten in request.forgotten_topics_data
        for index in forgotten.partitions
    )
    for each in sessions.partitions_of(request.session_id):
        if (each.topic, each.topic_id, each.request.partition) not in seen:
            wanted.append(each)
    return wanted


def named_in(request: FetchRequest, services: Services, name_of: NameOfId) -> Iterator[Named]:
    """As `Topics.named`, with the partitions of the session."""
    for each in wanted_in(request, services.fetch_sessions):
        yield Named(_topic(each, name_of), each.request.partition)


async def executed(
    request: FetchRequest, services: Services, name_of: NameOfId, code_of: CodeOf, execute: Execute
) -> Message | None:
    """Execute a Fetch some of whose partitions must fail, and return an answer in which these have an error."""
    wanted = wanted_in(request, services.fetch_sessions)
    failing = [each for each in wanted if code_of(_topic(each, name_of), each.request.partition) is not None]
    with _unreadable(failing):
        return await execute(msgspec.structs.replace(request, max_wait_ms=0))


@contextmanager
def _unreadable(partitions: list[WantedPartition]) -> Iterator[None]:
    epochs = [each.request.current_leader_epoch for each in partitions]
    requests = [each.request for each in partitions]
    for request in requests:
        request.current_leader_epoch = _NO_EPOCH_OF_A_LEADER
    try:
        yield
    finally:
        for request, epoch in zip(requests, epochs, strict=True):
            request.current_leader_epoch = epoch


def _topic(wanted: WantedPartition, name_of: NameOfId) -> str:
    return wanted.topic or name_of(wanted.topic_id) or ""
