"""DeleteTopics (20), versions 1–6: delete topics by name, or from version 6 on (KIP-516) by id.

One transaction of the metadata store deletes all topics, or several if they have many partitions; each topic succeeds
or fails independently: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID. A topic that is named twice,
or by name and id, is INVALID_REQUEST, in one row of the response. Without the right to delete it a topic is
TOPIC_AUTHORIZATION_FAILED, by id and without Describe UNKNOWN_TOPIC_ID. If delete.topic.enable is false, the whole
request is TOPIC_DELETION_DISABLED (INVALID_REQUEST before version 3). The response is sent when the partitions are
removed from this broker, so that the name can be used again at once; the files are deleted after file.delete.delay.ms.

The partitions are charged to the quota of controller mutations (KIP-599): from version 5 on a topic over the quota is
THROTTLING_QUOTA_EXCEEDED; earlier it is deleted, and the client throttled.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.metadata.administration.topics import NAMED_BY_ID_TOO, Naming, delete_topics
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_topic, refusal_of_topic
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from odradek.protocol.schema import ZERO_UUID

_FIRST_VERSION_WITH_DISABLED = 3
_FIRST_VERSION_WITH_STRICT_QUOTA = 5


async def handle(services: Services, context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not services.config.delete_topic_enable:
        disabled = context.api_version >= _FIRST_VERSION_WITH_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
        raise KafkaError(code, "Topic deletion is disabled.")
    time_slice = services.time_slices.begin(context.connection)
    pause = time_slice.step
    named = Counter(await time_slice.map(_naming, _states(request)))
    quota = services.throttling.mutations(context, _FIRST_VERSION_WITH_STRICT_QUOTA)
    rows: dict[Naming, DeletableTopicResult | None] = {}  # None: not refused
    with time_limit(request.timeout_ms):
        for naming in named:
            await pause()
            if not (naming.name is None and _is_named_too(services, context, named, naming.topic_id)):
                rows[naming] = _refused(services, context, named, naming)
        wanted = [naming for naming, refused in rows.items() if refused is None]
        report = services.topic_log.deletions(context)
        outcomes = await delete_topics(services.metadata, wanted, charge=quota.take, pause=pause, report=report)
    outcome_of = dict(zip(wanted, outcomes, strict=True))
    results = await time_slice.map(lambda naming: rows[naming] or _result(naming, outcome_of[naming]), rows)
    await _wait_until_gone(services, results, request.timeout_ms)
    return DeleteTopicsResponse(quota.throttle_ms(), results)


def error_response(request: DeleteTopicsRequest, code: ErrorCode, message: str) -> DeleteTopicsResponse:
    error = KafkaError(code, message)
    return DeleteTopicsResponse(responses=[_failure(state.name, state.topic_id, error) for state in _states(request)])


def _refused(
    services: Services, context: RequestContext, named: Counter[Naming], naming: Naming
) -> DeletableTopicResult | None:
    """Return the row of a topic that is not to be deleted."""
    name, topic_id = naming
    problem = _problem(naming, named[naming])  # first, as in Kafka: it depends on the request alone
    if problem:
        return _failure(name, topic_id, KafkaError(ErrorCode.INVALID_REQUEST, problem))
    refused = refusal_of_topic(services, context, Operation.DELETE, name or "", topic_id, by_id=name is None)
    if refused is not None:
        return _failure(name, topic_id, refused)
    topic = services.metadata.image.topics.get(name) if name is not None else None
    if topic is not None and Naming(None, topic.topic_id) in named:
        return _failure(
            name,
            topic.topic_id,
            KafkaError(ErrorCode.INVALID_REQUEST, NAMED_BY_ID_TOO),
        )
    return None


def _result(naming: Naming, outcome: TopicImage | KafkaError) -> DeletableTopicResult:
    if isinstance(outcome, KafkaError):
        return _failure(naming.name, naming.topic_id, outcome)
    return DeletableTopicResult(outcome.name, outcome.topic_id)


def _problem(naming: Naming, times: int) -> str:
    """The error in the naming of a topic, or an empty string."""
    name, topic_id = naming
    if name is None and topic_id == ZERO_UUID:
        return "Neither topic name nor id were specified."
    if name is not None and topic_id != ZERO_UUID:
        return "You may not specify both topic name and topic id."
    if times > 1:
        return "Duplicate topic name." if name is not None else "Duplicate topic id."
    return ""


def _is_named_too(services: Services, context: RequestContext, named: Counter[Naming], topic_id: bytes) -> bool:
    """Return whether a topic that is named by id is also named by name, which has the row in the response."""
    topic = services.metadata.image.topics_by_id.get(topic_id)
    return (
        topic is not None
        and Naming(topic.name) in named
        and allows_on_topic(services, context, Operation.DELETE, topic.name)
    )


def _failure(name: str | None, topic_id: bytes, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(name, topic_id, error.code, error.detail or None)


async def _wait_until_gone(services: Services, results: list[DeletableTopicResult], timeout_ms: int) -> None:
    deleted = [result for result in results if result.error_code == ErrorCode.NONE]
    if not await services.partitions.settled_within(timeout_ms):
        for result in deleted:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT


def _states(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return request.topics or [DeleteTopicState(name) for name in request.topic_names]


def _naming(state: DeleteTopicState) -> Naming:
    return Naming(state.name, state.topic_id)
