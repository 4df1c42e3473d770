"""ConsumerGroupDescribe (69), versions 0–1: state, members and assignments of groups of the consumer protocol.

A group that does not exist, or is of the classic protocol, is GROUP_ID_NOT_FOUND; admin clients then send
DescribeGroups. An empty group id is INVALID_GROUP_ID (differs from Kafka: with a message). The authorized operations
are set if the request includes them.

A group that the client may not describe is GROUP_AUTHORIZATION_FAILED, one with a topic that it may not describe
TOPIC_AUTHORIZATION_FAILED. A group that is named twice has one row (differs from Kafka: `request.repetitions`).
"""

from __future__ import annotations

from odradek.broker.coordinator.consumer_group.group import ConsumerGroup
from odradek.broker.request.authorized_operations import operations_on_group
from odradek.broker.request.context import RequestContext
from odradek.broker.request.group_ids import check_group_id
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(
    services: Services, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Steps[ConsumerGroupDescribeResponse]:
    rows = []
    for group_id in dict.fromkeys(request.group_ids):
        try:
            check(services, context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
            row = _group(services, group_id).described()
            _check_topics(services, context, row)
            if request.include_authorized_operations:
                row.authorized_operations = operations_on_group(services, context, group_id)
        except KafkaError as error:
            row = DescribedGroup(error.code, error.detail or None, group_id)
        rows.append(row)
        yield
    return ConsumerGroupDescribeResponse(groups=rows)


def error_response(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str
) -> ConsumerGroupDescribeResponse:
    rows = [DescribedGroup(code, message or None, group_id) for group_id in dict.fromkeys(request.group_ids)]
    return ConsumerGroupDescribeResponse(groups=rows)


def _check_topics(services: Services, context: RequestContext, row: DescribedGroup) -> None:
    if services.authorizer is None:
        return
    names = set()
    for member in row.members:
        names.update(member.subscribed_topic_names)
        for assignment in (member.assignment, member.target_assignment):
            names.update(each.topic_name for each in assignment.topic_partitions)
    for name in names:
        check(services, context, Operation.DESCRIBE, ResourceType.TOPIC, name)


def _group(services: Services, group_id: str) -> ConsumerGroup:
    check_group_id(group_id)
    group = services.groups.shard_of(group_id).groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group
