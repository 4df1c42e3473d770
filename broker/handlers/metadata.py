"""Metadata (3), versions 0–13: brokers, topics and the leaders of their partitions, all from this broker's image.

| topics in the request | version 0 | from version 1 on |
|---|---|---|
| null | (not possible) | all topics |
| empty | all topics | none |

From version 12 on a topic may be requested by its id (KIP-516), UNKNOWN_TOPIC_ID if it does not exist; if the request
has an id, its names are ignored.

A requested name that does not exist is created if auto.create.topics.enable and (from version 4 on) the request allow
it, with num.partitions and default.replication.factor; it is answered when it can be used. Otherwise it is
UNKNOWN_TOPIC_OR_PARTITION; an invalid name is INVALID_TOPIC_EXCEPTION. Differs from Kafka, whose first answer is
UNKNOWN_TOPIC_OR_PARTITION, and the client retries. Of the internal topics only that of groups is created, by the group
coordinator: nothing uses the others yet. As in Kafka, no topic is created if all would have more than 10,000 partitions
together. When the client disconnects, creation stops. The partitions are charged to the client's quota of controller
mutations (KIP-599), which throttles and refuses nothing here.

A partition without a leader is LEADER_NOT_AVAILABLE; if its leader has no listener of the client's name, it is
LISTENER_NOT_FOUND from version 6 on. `offline_replicas` (from version 5 on) are those on brokers that are not alive.
The authorized operations (KIP-430) are set if the request includes them. The rows of all other requests depend on no
client but its listener, so they are encoded once (`request.encoded_topics`).

A topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED if it is named, whether it exists or not,
UNKNOWN_TOPIC_ID by id, and not in the list of all topics. Creation needs Create on the cluster or the topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Final, cast

from odradek.broker.metadata.administration.placement import MAX_PARTITIONS
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS, INTERNAL_TOPICS, check_name
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.request.authorized_operations import NOT_REQUESTED, operations_on_cluster, operations_on_topic
from odradek.broker.request.context import RequestContext
from odradek.broker.request.encoded_topics import TopicRows
from odradek.broker.request.endpoints import administrator, broker_endpoints
from odradek.broker.request.rights import allows_on_cluster, allows_on_topic, refused
from odradek.broker.request.services import Services
from odradek.broker.request.throttling import MutationQuota
from odradek.broker.request.time_slices import Steps
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import (
    FIRST_VERSION_WITH_REQUESTS_BY_ID,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.schema import ZERO_UUID, EncodedPart

_LOG = StructuredLogger(__name__)

_FIRST_VERSION_WITH_LISTENER_ERRORS = 6
_NO_VERSION_WITH_STRICT_QUOTA = 0x7FFF
_NAMES_IN_A_STEP: Final = 16
"""Asking for the time after each name took an eighth of the time of a thousand topics."""
_ROWS_IN_A_STEP: Final = 1000
"""Rows of a request, which are only looked at: 0.2 ms."""

_Row = MetadataResponseTopic | EncodedPart


def handle(
    services: Services, context: RequestContext, request: MetadataRequest
) -> Steps[MetadataResponse | Awaitable[MetadataResponse]]:
    wanted = request.topics
    image = services.metadata.image
    if wanted is None or _wants_all(context, request):
        return (yield from _respond(services, context, request, sorted(image.topics), {}))
    creates = request.allow_auto_topic_creation and services.config.auto_create_topics_enable
    names: dict[str, None] = {}
    ids: dict[bytes, None] = {}
    missing: dict[str, None] = {}
    for place, topic in enumerate(wanted):
        if place % _ROWS_IN_A_STEP == _ROWS_IN_A_STEP - 1:
            yield
        if topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] = None
        if topic.name is not None:
            names[topic.name] = None
            if creates and topic.name not in image.topics:
                missing[topic.name] = None
        if context.api_version < FIRST_VERSION_WITH_REQUESTS_BY_ID and (ids or topic.name is None):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "topics have names only before version 12")
    if ids:
        return (yield from _respond_by_id(services, context, request, ids))
    if missing:
        return _create_and_respond(services, context, request, names, missing)
    return (yield from _respond(services, context, request, names, {}))


def error_response(request: MetadataRequest, code: ErrorCode, message: str) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(code, topic.name or "", topic.topic_id, topic.name in INTERNAL_TOPICS)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


async def _create_and_respond(
    services: Services, context: RequestContext, request: MetadataRequest, names: Iterable[str], missing: Iterable[str]
) -> MetadataResponse:
    errors: dict[str, ErrorCode] = {}
    quota = services.throttling.mutations(context, _NO_VERSION_WITH_STRICT_QUOTA)
    time_slice = services.time_slices.begin(context.connection)
    may_create_all = allows_on_cluster(services, context, Operation.CREATE)
    allowed = []
    for name in missing:
        await time_slice.step()
        if not _may_describe(services, context, name):
            continue
        if may_create_all or allows_on_topic(services, context, Operation.CREATE, name):
            allowed.append(name)
        else:
            errors[name] = refused(services, context, Operation.CREATE, ResourceType.TOPIC, name).code
    if len(allowed) * services.config.num_partitions > MAX_PARTITIONS:
        _LOG.warning("topics not created: too many partitions for one request", topics=len(allowed))
        allowed = []
    for name in allowed:
        await time_slice.step()
        try:
            await _create(services, context, name, quota)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another client has just created it
                errors[name] = error.code
    respond = _respond(services, context, request, names, errors)
    response = await services.time_slices.finish(respond, context.connection)
    response.throttle_time_ms = quota.throttle_ms()
    return response


async def _create(services: Services, context: RequestContext, name: str, quota: MutationQuota) -> None:
    report = services.topic_log.creations(context)
    if name == CONSUMER_OFFSETS:
        await services.groups.create_topic(report)
        return
    if name in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is not in use")
    await create_topic(services.metadata, name, charge=quota.take, report=report)
    await services.partitions.settled()


def _respond(
    services: Services,
    context: RequestContext,
    request: MetadataRequest,
    names: Iterable[str],
    errors: dict[str, ErrorCode],
) -> Steps[MetadataResponse]:
    image = services.metadata.image
    rows = _encoded_rows(services, context, request)
    topics: list[_Row] = []
    is_open = services.authorizer is None  # read once: a fifth of the time of a thousand topics
    for place, name in enumerate(names):
        if not place % _NAMES_IN_A_STEP:
            yield
        if not (is_open or _may_describe(services, context, name)):
            if _wants_all(context, request):
                continue
            code = refused(services, context, Operation.DESCRIBE, ResourceType.TOPIC, name).code
            topics.append(MetadataResponseTopic(code, name, ZERO_UUID, name in INTERNAL_TOPICS))
            continue
        topic = image.topics.get(name)
        if topic is not None:
            kept = None if rows is None else rows.get(topic)
            topics.append(kept or (yield from _topic(services, context, image, topic, rows)))
            continue
        code = errors.get(name) or missing_topic_error(name)
        operations = NOT_REQUESTED if rows is not None else operations_on_topic(services, context, name)
        topics.append(MetadataResponseTopic(code, name, ZERO_UUID, name in INTERNAL_TOPICS, [], operations))
    return _response(services, context, request, topics)


def _respond_by_id(
    services: Services, context: RequestContext, request: MetadataRequest, ids: Iterable[bytes]
) -> Steps[MetadataResponse]:
    image = services.metadata.image
    rows = _encoded_rows(services, context, request)
    topics: list[_Row] = []
    for topic_id in ids:
        yield
        topic = image.topics_by_id.get(topic_id)
        if topic is not None and _may_describe(services, context, topic.name):
            kept = None if rows is None else rows.get(topic)
            topics.append(kept or (yield from _topic(services, context, image, topic, rows)))
        else:
            topics.append(MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id))
    return _response(services, context, request, topics)


def _wants_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (not request.topics and context.api_version == 0)


def _may_describe(services: Services, context: RequestContext, name: str) -> bool:
    return allows_on_topic(services, context, Operation.DESCRIBE, name)


def _encoded_rows(services: Services, context: RequestContext, request: MetadataRequest) -> TopicRows | None:
    """The rows that are encoded already, or None if those of the response have the operations of its client."""
    if request.include_topic_authorized_operations:
        return None
    return services.encoded_topics.rows(context.api_version, context.listener_name)


def _response(
    services: Services, context: RequestContext, request: MetadataRequest, topics: list[_Row]
) -> MetadataResponse:
    image = services.metadata.image
    return MetadataResponse(
        brokers=[MetadataResponseBroker(*endpoint) for endpoint in broker_endpoints(services, context)],
        cluster_id=image.cluster_id,
        controller_id=administrator(services),
        topics=cast("list[MetadataResponseTopic]", topics),
        cluster_authorized_operations=(
            operations_on_cluster(services, context) if request.include_cluster_authorized_operations else NOT_REQUESTED
        ),
    )


def missing_topic_error(name: str) -> ErrorCode:
    """The error code for a topic that does not exist."""
    try:
        check_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(
    services: Services, context: RequestContext, image: MetadataImage, topic: TopicImage, rows: TopicRows | None
) -> Steps[_Row]:
    partitions = []
    for index, partition in enumerate(topic.partitions):
        partitions.append(_partition(image, context, index, partition))
        yield
    operations = NOT_REQUESTED if rows is not None else operations_on_topic(services, context, topic.name)
    row = MetadataResponseTopic(
        ErrorCode.NONE, topic.name, topic.topic_id, topic.name in INTERNAL_TOPICS, partitions, operations
    )
    return row if rows is None else (yield from rows.encode(topic, row))


def _partition(
    image: MetadataImage, context: RequestContext, index: int, partition: PartitionImage
) -> MetadataResponsePartition:
    brokers = image.brokers
    return MetadataResponsePartition(
        _partition_error(image, context, partition),
        index,
        partition.leader,
        partition.leader_epoch,
        list(partition.replicas),
        list(partition.isr),
        [replica for replica in partition.replicas if replica not in brokers],
    )


def _partition_error(image: MetadataImage, context: RequestContext, partition: PartitionImage) -> ErrorCode:
    leader = image.brokers.get(partition.leader)
    if leader is None:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if all(listener.name != context.listener_name for listener in leader.listeners):
        if context.api_version >= _FIRST_VERSION_WITH_LISTENER_ERRORS:
            return ErrorCode.LISTENER_NOT_FOUND
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE
