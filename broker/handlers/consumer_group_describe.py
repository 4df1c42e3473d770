"""ConsumerGroupDescribe (69), versions 0–1: state, members and assignments of groups of the consumer protocol.

A group that does not exist, or is of the classic protocol, is GROUP_ID_NOT_FOUND; admin clients then send
DescribeGroups. An empty group id is INVALID_GROUP_ID (differs from Kafka: with a message). Without access rules, the
authorized operations are all operations on a group, if the request includes them.
"""

from __future__ import annotations

from odradek.broker.coordinator.consumer_group.group import ConsumerGroup
from odradek.broker.request.authorized_operations import ALL_GROUP_OPERATIONS
from odradek.broker.request.context import RequestContext
from odradek.broker.request.group_ids import check_group_id
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
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
    for group_id in request.group_ids:
        try:
            row = _group(services, group_id).described()
            if request.include_authorized_operations:
                row.authorized_operations = ALL_GROUP_OPERATIONS
        except KafkaError as error:
            row = DescribedGroup(error.code, error.detail or None, group_id)
        rows.append(row)
        yield
    return ConsumerGroupDescribeResponse(groups=rows)


def error_response(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str
) -> ConsumerGroupDescribeResponse:
    rows = [DescribedGroup(code, message or None, group_id) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(groups=rows)


def _group(services: Services, group_id: str) -> ConsumerGroup:
    check_group_id(group_id)
    group = services.groups.shard_of(group_id).groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group
