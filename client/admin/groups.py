"""Groups: list, describe and delete them (KIP-222, KIP-229, KIP-518, KIP-848).

What is a group's goes to its coordinator, which any broker names (FindCoordinator); listing asks every broker for the
groups that it coordinates. A group is described as one of the newer protocol first, and where the broker does not have
it as such, as a classic one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import GroupDescription, GroupListing, MemberDescription, Results
from odradek.client.errors import BrokerError, ClientError, UnsupportedVersionError, broker_error
from odradek.client.group.consumer_protocol import assigned, decode_consumer_protocol
from odradek.client.group.coordinator import find_coordinators
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

    async def ask(connection: Connection, brokers: Sequence[int]) -> Outcomes[int, list[GroupListing]]:
        at_least = _FIRST_WITH_TYPES if types else _FIRST_WITH_STATES if states else 0
        version = connection.versions.highest(_LIST_GROUPS_KEY, at_least=at_least)
        answer = await connection.send(
            ListGroupsRequest(list(states), list(types)), ListGroupsResponse, version=version
        )
        if answer.error_code:
            raise broker_error(answer.error_code, tried, broker=connection.name)
        [broker] = brokers
        return {
            broker: [
                GroupListing(told.group_id, told.protocol_type, told.group_state, told.group_type, broker)
                for told in answer.groups
            ]
        }

    async def attempt(brokers: Sequence[int]) -> Outcomes[int, list[GroupListing]]:
        return await calls.at_brokers({broker: broker for broker in brokers}, ask)

    answers = await calls.for_each(tried, sorted(calls.cluster.image.brokers), attempt, timeout_ms)
    found = {listing.group_id: listing for of_broker in answers.values_or_raise().values() for listing in of_broker}
    return dict(sorted(found.items()))


async def describe_groups(
    calls: Calls, groups: Iterable[str], *, timeout_ms: int | None
) -> Results[str, GroupDescription]:
    tried = "describe a group"

    async def ask(connection: Connection, asked: Sequence[str]) -> Outcomes[str, GroupDescription]:
        outcomes: dict[str, GroupDescription | ClientError] = {}
        try:
            outcomes.update(await _describe_newer(connection, asked, tried))
        except UnsupportedVersionError:
            pass  # a broker without the newer protocol has none of its groups
        others = [group for group in asked if group not in outcomes or _is_unknown(outcomes[group])]
        if others:
            outcomes.update(await _describe_classic(connection, others, tried))
        return outcomes

    async def attempt(left: Sequence[str]) -> Outcomes[str, GroupDescription]:
        places = await coordinators(calls, tried, left)
        outcomes = await calls.at_brokers(places, ask)
        return {group: _with_coordinator(outcome, places[group]) for group, outcome in outcomes.items()}

    return await calls.for_each(tried, groups, attempt, timeout_ms)


async def delete_groups(calls: Calls, groups: Iterable[str], *, timeout_ms: int | None) -> Results[str, None]:
    tried = "delete a group"

    async def ask(connection: Connection, asked: Sequence[str]) -> Outcomes[str, None]:
        answer = await connection.send(DeleteGroupsRequest(list(asked)), DeleteGroupsResponse)
        return {
            told.group_id: group_error(told.error_code, tried, told.group_id, connection) if told.error_code else None
            for told in answer.results
        }

    async def attempt(left: Sequence[str]) -> Outcomes[str, None]:
        return await calls.at_brokers(await coordinators(calls, tried, left), ask)

    return await calls.for_each(tried, groups, attempt, timeout_ms)


async def coordinators(calls: Calls, tried: str, groups: Sequence[str]) -> dict[str, int | ClientError | None]:
    """The coordinator of each group, for `Calls.at_brokers`; or why there is none."""
    connection = await calls.cluster.any_connection()
    return {
        told.key: group_error(told.error_code, tried, told.key, connection, told.error_message)
        if told.error_code
        else told.node_id
        for told in await find_coordinators(connection, groups)
    }


async def _describe_newer(connection: Connection, groups: Sequence[str], tried: str) -> Outcomes[str, GroupDescription]:
    request = newer.ConsumerGroupDescribeRequest(list(groups))
    answer = await connection.send(request, newer.ConsumerGroupDescribeResponse)
    outcomes: dict[str, GroupDescription | ClientError] = {}
    for told in answer.groups:
        if told.error_code:
            outcomes[told.group_id] = group_error(told.error_code, tried, told.group_id, connection, told.error_message)
        else:
            outcomes[told.group_id] = GroupDescription(
                told.group_id,
                "consumer",
                "consumer",
                told.group_state,
                told.assignor_name,
                _UNKNOWN_NODE,
                tuple(_newer_member(member) for member in told.members),
                told.group_epoch,
            )
    return outcomes


def _newer_member(told: newer.Member) -> MemberDescription:
    return MemberDescription(
        told.member_id,
        told.instance_id,
        told.client_id,
        told.client_host,
        _partitions(told.assignment),
        tuple(told.subscribed_topic_names),
        told.subscribed_topic_regex or None,
        _partitions(told.target_assignment),
        told.member_epoch,
    )


def _partitions(assignment: newer.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


async def _describe_classic(
    connection: Connection, groups: Sequence[str], tried: str
) -> Outcomes[str, GroupDescription]:
    answer = await connection.send(classic.DescribeGroupsRequest(list(groups)), classic.DescribeGroupsResponse)
    outcomes: dict[str, GroupDescription | ClientError] = {}
    for told in answer.groups:
        if told.error_code:
            outcomes[told.group_id] = group_error(told.error_code, tried, told.group_id, connection, told.error_message)
        else:
            outcomes[told.group_id] = GroupDescription(
                told.group_id,
                "classic",
                told.protocol_type,
                told.group_state,
                told.protocol_data,
                _UNKNOWN_NODE,
                tuple(_classic_member(member, told.protocol_type) for member in told.members),
            )
    return outcomes


def _classic_member(told: classic.DescribedGroupMember, protocol_type: str) -> MemberDescription:
    topics: tuple[str, ...] = ()
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == "consumer":
        try:
            topics = tuple(decode_consumer_protocol(ConsumerProtocolSubscription, told.member_metadata).topics)
            assignment = tuple(assigned(decode_consumer_protocol(ConsumerProtocolAssignment, told.member_assignment)))
        except RemoteProtocolError:
            pass  # members may tell each other what they like; it is theirs to read
    return MemberDescription(
        told.member_id, told.group_instance_id, told.client_id, told.client_host, assignment, topics
    )


def _with_coordinator(
    outcome: GroupDescription | ClientError, place: int | ClientError | None
) -> GroupDescription | ClientError:
    if isinstance(outcome, ClientError) or not isinstance(place, int):
        return outcome
    return msgspec.structs.replace(outcome, coordinator=place)


def _is_unknown(outcome: GroupDescription | ClientError) -> bool:
    return isinstance(outcome, BrokerError) and outcome.code is ErrorCode.GROUP_ID_NOT_FOUND


def group_error(code: int, tried: str, group: str, connection: Connection, detail: str | None = None) -> BrokerError:
    """The error of a group; `tried` ends where its name follows."""
    return broker_error(code, f"{tried} {group}", detail, broker=connection.name)
