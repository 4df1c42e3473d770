"""Groups: list, describe and delete them (KIP-222, KIP-229, KIP-518, KIP-848).

Requests about a group go to its coordinator, which any broker can find (FindCoordinator). A list of groups is collected
from all brokers, each of which returns the groups that it coordinates. A group is described as one of the newer
protocol first, and if the broker has no such group, as a classic one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import GroupDescription, GroupListing, MemberDescription, Results
from odradek.client.errors import BrokerError, ClientError, UnsupportedVersionError, broker_error
from odradek.client.group.consumer_protocol import assigned, decode_consumer_protocol
from odradek.client.network.connection import Connection
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode, RemoteProtocolError
from odradek.protocol.messages import consumer_group_describe as newer
from odradek.protocol.messages import describe_groups as classic
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_LIST_GROUPS_KEY = 16
_FIRST_WITH_STATES, _FIRST_WITH_TYPES = 4, 5
_UNKNOWN_NODE = -1


async def list_groups(
    calls: Calls, *, states: Collection[str], types: Collection[str], timeout_ms: int | None
) -> dict[str, GroupListing]:
    tried = "list groups"

    async def call(connection: Connection, brokers: Sequence[int]) -> Outcomes[int, list[GroupListing]]:
        at_least = _FIRST_WITH_TYPES if types else _FIRST_WITH_STATES if states else 0
        version = connection.versions.highest(_LIST_GROUPS_KEY, at_least=at_least)
        response = await connection.send(
            ListGroupsRequest(list(states), list(types)), ListGroupsResponse, version=version
        )
        if response.error_code:
            raise broker_error(response.error_code, tried, broker=connection.name)
        [broker] = brokers
        return {
            broker: [
                GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type, broker)
                for group in response.groups
            ]
        }

    async def attempt(brokers: Sequence[int]) -> Outcomes[int, list[GroupListing]]:
        return await calls.at_brokers({broker: broker for broker in brokers}, call)

    responses = await calls.for_each(tried, sorted(calls.cluster.image.brokers), attempt, timeout_ms)
    found = {listing.group_id: listing for of_broker in responses.values_or_raise().values() for listing in of_broker}
    return dict(sorted(found.items()))


async def describe_groups(
    calls: Calls, groups: Iterable[str], *, timeout_ms: int | None
) -> Results[str, GroupDescription]:
    tried = "describe a group"

    async def attempt(left: Sequence[str]) -> Outcomes[str, GroupDescription]:
        targets = await calls.coordinators(tried, left)

        async def call(connection: Connection, requested: Sequence[str]) -> Outcomes[str, GroupDescription]:
            outcomes: dict[str, GroupDescription | ClientError] = {}
            try:
                outcomes.update(await _describe_newer(connection, requested, tried))
            except UnsupportedVersionError:
                pass  # a broker without the newer protocol has no such groups
            others = [group for group in requested if group not in outcomes or _is_unknown(outcomes[group])]
            if others:
                outcomes.update(await _describe_classic(connection, others, tried))
            return {group: _with_coordinator(outcome, targets[group]) for group, outcome in outcomes.items()}

        return await calls.at_brokers(targets, call)

    return await calls.for_each(tried, groups, attempt, timeout_ms)


async def delete_groups(calls: Calls, groups: Iterable[str], *, timeout_ms: int | None) -> Results[str, None]:
    tried = "delete a group"

    async def call(connection: Connection, requested: Sequence[str]) -> Outcomes[str, None]:
        response = await connection.send(DeleteGroupsRequest(list(requested)), DeleteGroupsResponse)
        return {
            result.group_id: group_error(result.error_code, tried, result.group_id, connection)
            if result.error_code
            else None
            for result in response.results
        }

    async def attempt(left: Sequence[str]) -> Outcomes[str, None]:
        return await calls.at_brokers(await calls.coordinators(tried, left), call)

    return await calls.for_each(tried, groups, attempt, timeout_ms)


async def _describe_newer(connection: Connection, groups: Sequence[str], tried: str) -> Outcomes[str, GroupDescription]:
    request = newer.ConsumerGroupDescribeRequest(list(groups))
    response = await connection.send(request, newer.ConsumerGroupDescribeResponse)
    outcomes: dict[str, GroupDescription | ClientError] = {}
    for group in response.groups:
        if group.error_code:
            outcomes[group.group_id] = group_error(
                group.error_code, tried, group.group_id, connection, group.error_message
            )
        else:
            outcomes[group.group_id] = GroupDescription(
                group.group_id,
                "consumer",
                "consumer",
                group.group_state,
                group.assignor_name,
                _UNKNOWN_NODE,
                tuple(_newer_member(member) for member in group.members),
                group.group_epoch,
            )
    return outcomes


def _newer_member(member: newer.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        tuple(member.subscribed_topic_names),
        member.subscribed_topic_regex or None,
        _partitions(member.target_assignment),
        member.member_epoch,
    )


def _partitions(assignment: newer.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


async def _describe_classic(
    connection: Connection, groups: Sequence[str], tried: str
) -> Outcomes[str, GroupDescription]:
    response = await connection.send(classic.DescribeGroupsRequest(list(groups)), classic.DescribeGroupsResponse)
    outcomes: dict[str, GroupDescription | ClientError] = {}
    for group in response.groups:
        if group.error_code:
            outcomes[group.group_id] = group_error(
                group.error_code, tried, group.group_id, connection, group.error_message
            )
        else:
            outcomes[group.group_id] = GroupDescription(
                group.group_id,
                "classic",
                group.protocol_type,
                group.group_state,
                group.protocol_data,
                _UNKNOWN_NODE,
                tuple(_classic_member(member, group.protocol_type) for member in group.members),
            )
    return outcomes


def _classic_member(member: classic.DescribedGroupMember, protocol_type: str) -> MemberDescription:
    topics: tuple[str, ...] = ()
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == "consumer":
        try:
            topics = tuple(decode_consumer_protocol(ConsumerProtocolSubscription, member.member_metadata).topics)
            assignment = tuple(assigned(decode_consumer_protocol(ConsumerProtocolAssignment, member.member_assignment)))
        except RemoteProtocolError:
            pass  # an own format of the members
    return MemberDescription(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment, topics
    )


def _with_coordinator(
    outcome: GroupDescription | ClientError, target: int | ClientError | None
) -> GroupDescription | ClientError:
    if isinstance(outcome, ClientError) or not isinstance(target, int):
        return outcome
    return msgspec.structs.replace(outcome, coordinator=target)


def _is_unknown(outcome: GroupDescription | ClientError) -> bool:
    return isinstance(outcome, BrokerError) and outcome.code is ErrorCode.GROUP_ID_NOT_FOUND


def group_error(code: int, tried: str, group: str, connection: Connection, detail: str | None = None) -> BrokerError:
    """The error of a group; its name is appended to `tried`."""
    return broker_error(code, f"{tried} {group}", detail, broker=connection.name)
