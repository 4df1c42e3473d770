"""The fetch sessions of a scripted broker (KIP-227): the sum of incremental requests, and incremental responses."""

from __future__ import annotations

import itertools
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

Key = tuple[str, bytes, int]


class Sessions:
    """The sessions of one broker. `forget` drops all, as a restart does; `incremental` counts the requests in one."""

    def __init__(self) -> None:
        self.incremental = 0
        self._ids = itertools.count(1)
        self._open: dict[int, tuple[int, dict[Key, FetchPartition]]] = {}

    def forget(self) -> None:
        self._open.clear()

    def enter(self, request: FetchRequest) -> FetchRequest | FetchResponse:
        """All partitions of the session after a request, or the session error."""
        if request.session_epoch == 0:
            self._open.pop(request.session_id, None)
            self._open[next(self._ids)] = (1, self._named(request))
            return request
        if request.session_id not in self._open:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        epoch, partitions = self._open[request.session_id]
        if epoch != request.session_epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self.incremental += 1
        partitions.update(self._named(request))
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                del partitions[topic.topic, topic.topic_id, index]
        self._open[request.session_id] = (epoch + 1, partitions)
        whole: dict[tuple[str, bytes], FetchTopic] = {}
        for (name, topic_id, _), partition in partitions.items():
            whole.setdefault((name, topic_id), FetchTopic(name, topic_id, [])).partitions.append(partition)
        return FetchRequest(
            max_wait_ms=request.max_wait_ms, isolation_level=request.isolation_level, topics=list(whole.values())
        )

    def leave(self, request: FetchRequest, answer: FetchResponse) -> FetchResponse:
        """The response without unchanged partitions."""
        answer.session_id = request.session_id
        if request.session_epoch == 0:
            answer.session_id = max(self._open)
            return answer
        answer.responses = [
            FetchableTopicResponse(topic.topic, topic.topic_id, rows)
            for topic in answer.responses
            if (rows := [row for row in topic.partitions if _is_news(row)])
        ]
        return answer

    def _named(self, request: FetchRequest) -> dict[Key, FetchPartition]:
        return {
            (topic.topic, topic.topic_id, partition.partition): partition
            for topic in request.topics
            for partition in topic.partitions
        }


def _is_news(row: Any) -> bool:
    return bool(row.records) or row.error_code != 0
