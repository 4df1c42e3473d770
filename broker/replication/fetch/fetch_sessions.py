"""The cache of incremental fetch sessions (KIP-227), bounded, with Kafka's rules of eviction.

If every slot or every partition of the cache is taken, a new session may replace another one:

1. the least recently used session, if its last use was more than two minutes ago; else
2. the least valuable session that is older than two minutes (a follower may replace younger consumer sessions, too), if
   it is less valuable than the new one. Consumers' sessions are worth less than followers', small less than large ones.

Otherwise no session is created: the client gets id 0 and continues with full requests. Kafka's `FetchSessionCache` is
the model.

Differs from Kafka: there is one cache instead of eight shards, because one event loop needs no lock striping.

Differs from Kafka: the partitions of all sessions together are bounded, too, because a slot may hold any number of
them. A session that would grow over the bound ends with FETCH_SESSION_ID_NOT_FOUND, and its client opens another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.broker.clock import Clock
from odradek.broker.randomness import Randomness
from odradek.broker.replication.fetch.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    Fetch,
    FetchSession,
    FullFetch,
    IncrementalFetch,
    SessionlessFetch,
    WantedPartition,
    next_epoch,
)
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FIRST_VERSION_WITH_TOPIC_IDS, FetchRequest

EVICTION_AGE = 120.0
"""Seconds; Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""


class FetchSessions:
    """The sessions of one broker, `partitions_count` partitions in all.

    `slots` is max.incremental.fetch.session.cache.slots; 0 disables sessions. `max_partitions` is
    max.incremental.fetch.session.cache.partitions.
    """

    def __init__(self, slots: int, clock: Clock, randomness: Randomness, max_partitions: int = 100_000) -> None:
        self.evictions = 0
        self.partitions_count = 0
        self._max_partitions = max_partitions
        self._slots = slots
        self._clock = clock
        self._randomness = randomness
        self._sessions: dict[int, FetchSession] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions_of(self, session_id: int) -> tuple[WantedPartition, ...]:
        """The partitions of a session, in the order of reading; none of an unknown session."""
        session = self._sessions.get(session_id)
        return () if session is None else tuple(session.partitions.values())

    def begin(self, request: FetchRequest, version: int, *, from_follower: bool, owner: Principal = ANONYMOUS) -> Fetch:
        """Determine the partitions that a request of `owner` wants, and count the request in its session.

        A session belongs to the principal that has opened it: for others it does not exist.

        Raises KafkaError FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR: the
        whole request fails with it, and the client opens a new session.
        """
        epoch = request.session_epoch
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if self._find(request.session_id, owner) is not None:
                self._remove(request.session_id)
            if epoch == FINAL_EPOCH:
                return SessionlessFetch(request)
            uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
            return FullFetch(request, self, privileged=from_follower, uses_topic_ids=uses_topic_ids, owner=owner)
        session = self._find(request.session_id, owner)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
        if session.epoch != epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"the next epoch is {session.epoch}, the request has {epoch}"
            )
        if session.uses_topic_ids != (version >= FIRST_VERSION_WITH_TOPIC_IDS):
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a session uses topic ids always or never")
        before = len(session.partitions)
        session.update(request)
        self.partitions_count += len(session.partitions) - before
        if not session.partitions:
            self._remove(session.session_id)
            return SessionlessFetch(request)
        if self.partitions_count > self._max_partitions and len(session.partitions) > before:
            self._remove(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the fetch sessions have too many partitions")
        session.epoch = next_epoch(epoch)
        self._touch(session)
        return IncrementalFetch(session)

    def open(
        self,
        partitions: Sequence[WantedPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        owner: Principal = ANONYMOUS,
    ) -> int:
        """Store a new session and return its id, or INVALID_SESSION_ID if there is no room for it."""
        now = self._clock.monotonic()
        if len(partitions) > self._max_partitions:
            return INVALID_SESSION_ID
        while len(self._sessions) >= self._slots or self.partitions_count + len(partitions) > self._max_partitions:
            if not self._evict_for(privileged, len(partitions), now):
                return INVALID_SESSION_ID
        session_id = self._new_id()
        session = FetchSession(
            session_id,
            privileged=privileged,
            uses_topic_ids=uses_topic_ids,
            partitions=partitions,
            now=now,
            owner=owner,
        )
        self._sessions[session_id] = session
        self.partitions_count += len(session.partitions)
        return session_id

    def clear(self) -> None:
        """End all sessions: their clients open others."""
        self._sessions.clear()
        self.partitions_count = 0

    def _find(self, session_id: int, owner: Principal) -> FetchSession | None:
        session = self._sessions.get(session_id)
        if session is None or (session.owner is not owner and session.owner != owner):
            return None
        return session

    def _touch(self, session: FetchSession) -> None:
        session.last_used = self._clock.monotonic()
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)

    def _evict_for(self, privileged: bool, size: int, now: float) -> bool:
        victim = session_to_evict(self._sessions.values(), privileged=privileged, size=size, now=now)
        if victim is None:
            return False
        self._remove(victim.session_id)
        self.evictions += 1
        return True

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions_count -= len(session.partitions)

    def _new_id(self) -> int:
        while True:
            session_id = 1 + int(self._randomness.random() * 0x7FFFFFFE)
            if session_id not in self._sessions:
                return session_id


def session_to_evict(
    sessions: Iterable[FetchSession], *, privileged: bool, size: int, now: float
) -> FetchSession | None:
    """Choose the session that a new one of `size` partitions may replace; `sessions` are least recently used first."""
    candidates = []
    for position, session in enumerate(sessions):
        if position == 0 and now - session.last_used > EVICTION_AGE:
            return session
        if now - session.created > EVICTION_AGE or (privileged and not session.privileged):
            candidates.append(session)
    victim = min(candidates, key=lambda s: (s.privileged, len(s.partitions), s.session_id), default=None)
    if victim is None or (victim.privileged, len(victim.partitions)) >= (privileged, size):
        return None
    return victim
