"""The follower's side of a fetch session (KIP-227): requests that name only what has changed.

The first request names all partitions and opens a session. Each later one names those whose offset or epoch has
changed, those that are new, and those to forget. After an error, or without an answer, the next request names all
again: the leader may have missed one. The leader's side is `replication.fetch.fetch_session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.broker.replication.fetch.fetch_session import INITIAL_EPOCH, INVALID_SESSION_ID, next_epoch
from odradek.broker.replication.follower.settings import FollowerSettings
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

PartitionKey = tuple[bytes, int]
"""(topic id, partition index)"""


class FetchRequests:
    """The requests of one session with one leader. `answered` or `reset` follows each `build`."""

    def __init__(self, node_id: int, settings: FollowerSettings) -> None:
        self._node_id = node_id
        self._settings = settings
        self._session_id = INVALID_SESSION_ID
        self._epoch = INITIAL_EPOCH
        self._sent: dict[PartitionKey, FetchPartition] = {}

    def build(self, wanted: Mapping[PartitionKey, FetchPartition], broker_epoch: int) -> FetchRequest:
        """Build the request for exactly these partitions."""
        if self._epoch == INITIAL_EPOCH:
            self._sent = {}
        changed = {key: each for key, each in wanted.items() if self._sent.get(key) != each}
        forgotten = [key for key in self._sent if key not in wanted]
        self._sent = dict(wanted)
        settings = self._settings
        return FetchRequest(
            replica_state=ReplicaState(self._node_id, broker_epoch),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[
                FetchTopic("", topic_id, [changed[topic_id, index] for index in indexes])
                for topic_id, indexes in _by_topic(changed)
            ],
            forgotten_topics_data=[ForgottenTopic("", topic_id, indexes) for topic_id, indexes in _by_topic(forgotten)],
        )

    def answered(self, response: FetchResponse) -> bool:
        """Handle the end of a request; return False if the leader does not have the session (any more)."""
        if response.error_code:
            self.reset()
            return False
        if self._epoch == INITIAL_EPOCH:
            self._session_id = response.session_id
            self._epoch = INITIAL_EPOCH if response.session_id == INVALID_SESSION_ID else next_epoch(INITIAL_EPOCH)
        else:
            self._epoch = next_epoch(self._epoch)
        return True

    def reset(self) -> None:
        """Open a new session with the next request, which also ends the old one."""
        self._epoch = INITIAL_EPOCH


def _by_topic(keys: Iterable[PartitionKey]) -> Iterable[tuple[bytes, list[int]]]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return topics.items()
