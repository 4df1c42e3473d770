"""A fetch session with one broker: what need not be said again in the next request to Fetch (KIP-227).

```
        request: id 0, epoch 0, all partitions          answer: id n
opening ---------------------------------------------------------------> open, next epoch 1
   ^      <-- an answer with id 0: the broker keeps none; the next request is whole again
   |
   +-- an error of the session, or no answer: id n, epoch 0: the broker drops the old session for a new one

open    request: id n, epoch e; partitions that are new or changed, and those to forget
        answer: only partitions with news                              --> open, next epoch e + 1
```
Both sides count the epochs, so that a request or an answer that was lost is noticed. A session is not closed: brokers
drop the one that was not used for the longest time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

_MAX_EPOCH = 2**31 - 1


class FetchKey(NamedTuple):
    """A partition of a session. A topic that was created again is another one, by its id."""

    topic: str
    topic_id: bytes
    partition: int


class FetchSession:
    """The session of a consumer with one broker; one request at a time.

    Between `fill` and `handle_response` or `handle_error` the request is under way.
    """

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self._by_id = False
        self._partitions: dict[FetchKey, FetchPartition] = {}  # as the broker knows them

    def fill(self, request: FetchRequest, wanted: Mapping[FetchKey, FetchPartition], *, by_id: bool) -> None:
        """Say in `request` that exactly these partitions are wanted. Topics go by id, or by name."""
        if by_id != self._by_id:
            self.handle_error()  # a broker does not take both in one session
            self._by_id = by_id
        known = self._partitions if self._epoch else {}
        request.session_id = self._id
        request.session_epoch = self._epoch
        request.topics = _by_topic((key, wanted[key]) for key in wanted if known.get(key) != wanted[key])
        request.forgotten_topics_data = _forgotten(key for key in known if key not in wanted)
        self._partitions = dict(wanted)

    def handle_response(self, response: FetchResponse) -> None:
        """The answer came, with an error or without."""
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
        """No answer came: what the broker knows is open, so it is told everything again."""
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
