"""The log of topics: who created, altered or deleted which, by which API. Events of `odradek.broker.topics`, at INFO.

```
topic created topic=oders id=… partitions=1 replicas=1 principal=User:alice … client_id=app api=Metadata
topic altered topic=orders id=… partitions=12 … api=CreatePartitions
topic altered topic=orders id=… properties="retention.ms, segment.ms" … api=IncrementalAlterConfigs
topic altered topic=orders reassigned=3 … api=AlterPartitionReassignments
topic deleted topic=orders id=… partitions=12 replicas=1 … api=DeleteTopics
```

A line is written as soon as the change is, so that it is there even if the client has gone before the answer.
`api=Metadata` is a topic that a client only named, `api=FindCoordinator` an internal one. `outcome=unknown`: the
metadata store did not answer in time, and may have made the change. Properties are names without values, as in the
audit log. The lines are limited like those of changes there, because one request may name 10,000 topics; the others
are counted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from odradek.broker.clock import Clock
from odradek.broker.metadata.administration.topic_writes import Report
from odradek.broker.metadata.image import TopicImage
from odradek.broker.request.audit import MOST_CHANGES
from odradek.broker.request.context import RequestContext
from odradek.broker.request.line_fields import client_of, few, fields_of_request, shortened
from odradek.broker.request.line_limits import SPAN_SECONDS, LineLimits
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.api import NAMES
from odradek.protocol.errors import KafkaError
from odradek.protocol.uuids import uuid_to_text

LOGGER: Final = "odradek.broker.topics"
_LOG: Final = StructuredLogger(LOGGER)
_CREATED: Final = "topic created"
_ALTERED: Final = "topic altered"
_DELETED: Final = "topic deleted"


class TopicLog:
    """The log of topics of a broker. Used on the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._limits = {  # no event takes the lines of another
            event: LineLimits(clock, *MOST_CHANGES, partial(self._dropped, event))
            for event in (_CREATED, _ALTERED, _DELETED)
        }

    def creations(self, context: RequestContext) -> Report:
        """Return the function that records the topics that a request creates."""
        return partial(self._whole_topic, _CREATED, context)

    def deletions(self, context: RequestContext) -> Report:
        """Return the function that records the topics that a request deletes."""
        return partial(self._whole_topic, _DELETED, context)

    def growths(self, context: RequestContext) -> Report:
        """Return the function that records the topics to which a request adds partitions."""
        return lambda topic, error: self._altered(context, topic, {"partitions": len(topic.partitions)}, error)

    def alterations(self, context: RequestContext, properties: Sequence[str]) -> Report:
        """Return the function that records the topics whose properties a request changes."""
        named = few(len(properties), properties)
        return lambda topic, error: self._altered(context, topic, {"properties": named}, error)

    def reassigned(self, context: RequestContext, counts: Mapping[str, int]) -> None:
        """Record topics by name, with the number of partitions whose reassignment a request has begun or cancelled."""
        for topic, count in counts.items():
            self._write(_ALTERED, context, topic, {"reassigned": count}, None)

    def tick(self) -> None:
        """Write the numbers of lines that were dropped. To be called every few seconds."""
        for limits in self._limits.values():
            limits.tick()

    def close(self) -> None:
        """Write the numbers of dropped lines so far. To be called when a broker stops, after the last request."""
        for limits in self._limits.values():
            limits.end_span()

    def _whole_topic(self, event: str, context: RequestContext, topic: TopicImage, error: KafkaError | None) -> None:
        partitions = topic.partitions
        fields = {"partitions": len(partitions), "replicas": len(partitions[0].replicas)}
        self._write(event, context, topic.name, {"id": uuid_to_text(topic.topic_id), **fields}, error)

    def _altered(
        self, context: RequestContext, topic: TopicImage, fields: Mapping[str, Any], error: KafkaError | None
    ) -> None:
        self._write(_ALTERED, context, topic.name, {"id": uuid_to_text(topic.topic_id), **fields}, error)

    def _write(
        self, event: str, context: RequestContext, topic: str, fields: Mapping[str, Any], error: KafkaError | None
    ) -> None:
        if not _LOG.enabled_for(logging.INFO) or not self._limits[event].allows(client_of(context.connection)):
            return
        who = fields_of_request(context, NAMES[context.api_key])
        outcome = {} if error is None else {"outcome": "unknown"}
        _LOG.info(event, topic=shortened(topic), **fields, **who, **outcome)

    @staticmethod
    def _dropped(event: str, client: str, count: int) -> None:
        _LOG.info("dropped", dropped=event, count=count, client=client, seconds=int(SPAN_SECONDS))
