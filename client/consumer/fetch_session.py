"""The incremental fetch session with one broker: a Fetch request contains only what changed (KIP-227).

```
        request: id 0, epoch 0, all partitions          response: id n
opening ---------------------------------------------------------------> open, next epoch 1
   ^      <-- a response with id 0: the broker has no session; the next request is full again
   |
   +-- a session error, or no response: id n, epoch 0: the broker replaces the old session by a new one

open    request: id n, epoch e; new and changed partitions, and those to remove
        response: only partitions with records or changes              --> open, next epoch e + 1
```
Both sides count the epochs and so detect a lost request or response. The client never closes a session: brokers evict
the least recently used one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

_MAX_EPOCH = 2**31 - 1


class FetchKey(NamedTuple):
    """A partition of a session. A topic that was deleted and created again has another id."""

    topic: str
    topic_id: bytes
    partition: int


class FetchSession:
    """The session of a consumer with one broker, for one request at a time: `fill`, then one of the handlers."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self._by_id = False
        self._partitions: dict[FetchKey, FetchPartition] = {}  # as the broker has them after the last request

    def fill(self, request: FetchRequest, wanted: Mapping[FetchKey, FetchPartition], *, by_id: bool) -> None:
        """Fill `request` so that the session has exactly these partitions, with topics by id or by name."""
        if by_id != self._by_id:
            self.handle_error()  # a session cannot have both
            self._by_id = by_id
        known = self._partitions if self._epoch else {}
        request.session_id = self._id
        request.session_epoch = self._epoch
        request.topics = _by_topic((key, wanted[key]) for key in wanted if known.get(key) != wanted[key])
        request.forgotten_topics_data = _forgotten(key for key in known if key not in wanted)
        self._partitions = dict(wanted)

    def handle_response(self, response: FetchResponse) -> None:
        """Continue, restart or replace the session, as the response says."""
        if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND or not (
            response.error_code or response.session_id
        ):
            self._id = self._epoch = 0
        elif response.error_code:
            self.handle_error()
        else:
            self._id = response.session_id
            self._epoch = self._epoch + 1 if self._epoch < _MAX_EPOCH else 1

    def handle_error(self) -> None:
        """Make the next request a full one: without a response the broker's state is unknown."""
        self._epoch = 0


def _by_topic(partitions: Iterable[tuple[FetchKey, FetchPartition]]) -> list[FetchTopic]:
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for (name, topic_id, _), partition in partitions:
        topics.setdefault((name, topic_id), FetchTopic(name, topic_id, [])).partitions.append(partition)
    return list(topics.values())


def _forgotten(keys: Iterable[FetchKey]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for name, topic_id, partition in keys:
        topics.setdefault((name, topic_id), ForgottenTopic(name, topic_id, [])).partitions.append(partition)
    return list(topics.values())
