"""DeleteTopics (20), versions 1–6: delete topics by name, or from version 6 on (KIP-516) by id.

Each topic succeeds or fails for itself: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID; one that is named twice, or by
name and id at once, is INVALID_REQUEST. If delete.topic.enable is false the whole request is TOPIC_DELETION_DISABLED
(INVALID_REQUEST before version 3). The answer goes out when the partitions are gone from this broker, so that the
name can be used again at once; the files are removed after file.delete.delay.ms.
"""

from __future__ import annotations

from collections import Counter

from broker.handlers.services import Services
from broker.metadata.image import MetadataImage
from broker.metadata.topics import delete_topic
from broker.server.context import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.schema import ZERO_UUID

_FIRST_VERSION_WITH_DISABLED = 3


async def handle(services: Services, context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not services.config.delete_topic_enable:
        disabled = context.api_version >= _FIRST_VERSION_WITH_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
        raise KafkaError(code, "Topic deletion is disabled.")
    states = _states(request)
    image = services.metadata.image
    named = Counter(_topic_id(image, state) for state in states)
    results = []
    for state in states:
        topic_id = _topic_id(image, state)
        if topic_id is None:
            results.append(_failure(state, _why_unknown(state)))
        elif named[topic_id] > 1:
            duplicate = KafkaError(ErrorCode.INVALID_REQUEST, "The topic is named more than once.")
            results.append(_failure(state, duplicate))
        else:
            results.append(await _delete(services, state, topic_id))
    await _wait_until_gone(services, results, request.timeout_ms)
    return DeleteTopicsResponse(responses=results)


def error_response(request: DeleteTopicsRequest, code: ErrorCode, message: str) -> DeleteTopicsResponse:
    error = KafkaError(code, message)
    return DeleteTopicsResponse(responses=[_failure(state, error) for state in _states(request)])


async def _delete(services: Services, state: DeleteTopicState, topic_id: bytes) -> DeletableTopicResult:
    try:
        topic = await delete_topic(services.metadata, topic_id=topic_id)
    except KafkaError as error:
        return _failure(state, error)
    return DeletableTopicResult(topic.name, topic_id)


def _failure(state: DeleteTopicState, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(state.name, state.topic_id, error.code, error.detail or None)


async def _wait_until_gone(services: Services, results: list[DeletableTopicResult], timeout_ms: int) -> None:
    deleted = [result for result in results if result.error_code == ErrorCode.NONE]
    if not await services.partitions.settled_within(timeout_ms):
        for result in deleted:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT


def _states(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return request.topics or [DeleteTopicState(name) for name in request.topic_names]


def _topic_id(image: MetadataImage, state: DeleteTopicState) -> bytes | None:
    """The id of the topic that is meant, if there is such a topic and only one way of naming it was used."""
    if state.name is None:
        return state.topic_id if state.topic_id in image.topics_by_id else None
    if state.topic_id != ZERO_UUID or state.name not in image.topics:
        return None
    return image.topics[state.name].topic_id


def _why_unknown(state: DeleteTopicState) -> KafkaError:
    if state.name is None:
        if state.topic_id == ZERO_UUID:
            return KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if state.topic_id != ZERO_UUID:
        return KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
