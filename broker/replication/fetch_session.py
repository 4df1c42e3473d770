"""One incremental fetch session (KIP-227), and what a Fetch request asks for with or without one.

A consumer or follower of many partitions names them all once (a full fetch, session epoch 0) and gets a session id;
from then on its requests carry only what changed, and the responses only partitions with something to say. Both ends
count epochs, so that a lost or repeated request is noticed.

| session id, epoch in the request | meaning | here |
|---|---|---|
| 0, -1 | no session wanted | `SessionlessFetch` |
| n, -1 | close session n; no session wanted | `SessionlessFetch` |
| 0, 0 | open a session | `FullFetch` |
| n, 0 | close session n, open another | `FullFetch` |
| n, e > 0 | request number e of session n | `IncrementalFetch` |

In an incremental response a partition appears when it has records, an error, a diverging epoch, a preferred replica,
or when its high watermark or log start offset is not what the peer was told last. A partition that gave records goes
to the end of the session's order, so that `max_bytes` starves nobody. A partition is the same one in a session by its
topic id from version 13 on and by its topic name before; a session cannot change between the two.

Pure bookkeeping: no I/O, no clock. Kafka's `FetchSession`, `FullFetchContext` and `IncrementalFetchContext` are the
model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import NO_ERROR, ErrorCode
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from odradek.broker.replication.fetch_sessions import FetchSessions

INVALID_SESSION_ID: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 0x7FFFFFFF

PartitionKey = tuple[bytes | str, int]
"""(topic id or name, partition index)"""


class WantedPartition:
    """A partition that a fetch asks for; in a session also what the peer was last told of it."""

    __slots__ = ("high_watermark", "log_start_offset", "request", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, request: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.request = request
        self.high_watermark = -1
        self.log_start_offset = -1

    def remember(self, row: PartitionData) -> bool:
        """Note what the peer is told by `row`; return whether there is anything to tell."""
        tell = False
        if self.high_watermark != row.high_watermark:
            tell = True
            self.high_watermark = row.high_watermark
        if self.log_start_offset != row.log_start_offset:
            tell = True
            self.log_start_offset = row.log_start_offset
        if row.error_code != NO_ERROR:
            # So that the partition is told again when the error has gone.
            self.high_watermark = -1
            return True
        return tell or bool(row.records) or row.diverging_epoch.epoch >= 0 or row.preferred_read_replica >= 0


Row = tuple[WantedPartition, PartitionData]


class FetchSession:
    """The partitions of one session in the order of reading. `epoch` is the one that the next request must carry."""

    __slots__ = ("created", "epoch", "last_used", "partitions", "privileged", "session_id", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        partitions: Iterable[WantedPartition],
        now: float,
    ) -> None:
        self.session_id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.partitions = {self.key(p.topic, p.topic_id, p.request.partition): p for p in partitions}
        self.created = now
        self.last_used = now
        self.epoch = next_epoch(INITIAL_EPOCH)

    def key(self, topic: str, topic_id: bytes, index: int) -> PartitionKey:
        return (topic_id if self.uses_topic_ids else topic, index)

    def update(self, request: FetchRequest) -> None:
        """Take in what an incremental request adds, changes and forgets."""
        partitions = self.partitions
        for topic in request.topics:
            for wanted in topic.partitions:
                known = partitions.get(self.key(topic.topic, topic.topic_id, wanted.partition))
                if known is None:
                    added = WantedPartition(topic.topic, topic.topic_id, wanted)
                    partitions[self.key(topic.topic, topic.topic_id, wanted.partition)] = added
                else:
                    known.request = wanted
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                partitions.pop(self.key(forgotten.topic, forgotten.topic_id, index), None)

    def tell(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows that the peer must be told, and move partitions that gave records to the end."""
        for row in rows:
            wanted, data = row
            if wanted.remember(data):
                if data.records:
                    key = self.key(wanted.topic, wanted.topic_id, wanted.request.partition)
                    if self.partitions.pop(key, None) is not None:
                        self.partitions[key] = wanted
                yield row


class Fetch(ABC):
    """What one request asks for: `partitions` in the order of reading. `respond` is called once, at the end."""

    partitions: Sequence[WantedPartition]

    @abstractmethod
    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        """Build the response from one row per wanted partition, in the same order."""


class SessionlessFetch(Fetch):
    """Everything is named in the request and answered; nothing is remembered."""

    def __init__(self, request: FetchRequest) -> None:
        self.partitions = wanted_partitions(request)

    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        return FetchResponse(responses=group_by_topic(rows))


class FullFetch(Fetch):
    """The first request of a session: the session exists once it is answered, if there is room for it."""

    def __init__(
        self, request: FetchRequest, sessions: FetchSessions, *, privileged: bool, uses_topic_ids: bool
    ) -> None:
        self.partitions = wanted_partitions(request)
        self._sessions = sessions
        self._privileged = privileged
        self._uses_topic_ids = uses_topic_ids

    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        for wanted, data in rows:
            wanted.remember(data)
        session_id = self._sessions.open(
            self.partitions, privileged=self._privileged, uses_topic_ids=self._uses_topic_ids
        )
        return FetchResponse(session_id=session_id, responses=group_by_topic(rows))


class IncrementalFetch(Fetch):
    """A later request of a session, already counted: `session.epoch` is one ahead of the request's."""

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self._epoch = session.epoch
        self.partitions = tuple(session.partitions.values())

    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:
            # Another request of this session came while this one was parked: the peer must start again.
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        return FetchResponse(session_id=session.session_id, responses=group_by_topic(session.tell(rows)))


def next_epoch(epoch: int) -> int:
    """The session epoch after `epoch`: it wraps to 1, since 0 opens a session; -1 stays -1."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _LAST_EPOCH else epoch + 1


def wanted_partitions(request: FetchRequest) -> list[WantedPartition]:
    """The partitions that the request itself names, in its order."""
    wanted = []
    for topic in request.topics:  # a comprehension would be a call: 0.2 µs of every Fetch
        for partition in topic.partitions:
            wanted.append(WantedPartition(topic.topic, topic.topic_id, partition))  # noqa: PERF401 - see above
    return wanted


def group_by_topic(rows: Iterable[Row]) -> list[FetchableTopicResponse]:
    """Rows as topics: neighbours of the same topic share an entry, so the order of reading survives."""
    topics: list[FetchableTopicResponse] = []
    last: FetchableTopicResponse | None = None
    for wanted, data in rows:
        if last is None or last.topic_id != wanted.topic_id or last.topic != wanted.topic:
            last = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[])
            topics.append(last)
        last.partitions.append(data)
    return topics
