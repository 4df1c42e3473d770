"""The changes that the audit log records: for each API that changes something, the names of what it is asked to change.

Only names: the value of a property may be a secret, and records are private.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from enum import IntEnum
from itertools import chain
from typing import Any, cast

from odradek.broker.request.audit import Audit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler, Result
from odradek.broker.request.line_fields import few
from odradek.broker.request.time_slices import Steps, is_steps
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.code_generation.error_counts import error_counter
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, RequestEntryData
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.uuids import uuid_to_text

_RESOURCE_TYPES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}


Named = tuple[int, Iterator[str]]
"""How many things a request wants to change, and their texts: these are made when asked for, as few are shown."""


def _topics(request: Any) -> Named:
    return len(request.topics), (f"topic {topic.name}" for topic in request.topics)


def _deleted_topics(request: DeleteTopicsRequest) -> Named:
    named = (topic.name or f"with id {uuid_to_text(topic.topic_id)}" for topic in request.topics)
    return len(request.topics) + len(request.topic_names), (f"topic {n}" for n in chain(named, request.topic_names))


def _records(request: Any) -> Named:
    return sum(len(topic.partitions) for topic in request.topics), (
        f"records of {topic.name}-{partition.partition_index} before {partition.offset}"
        for topic in request.topics
        for partition in topic.partitions
    )


def _configs(request: Any) -> Named:
    return len(request.resources), (
        f"{_RESOURCE_TYPES.get(each.resource_type, each.resource_type)} {each.resource_name}: "
        + few(len(each.configs), (config.name for config in each.configs))
        for each in request.resources
    )


def _created_rules(request: CreateAclsRequest) -> Named:
    return len(request.creations), (
        f"rule {_named(PermissionType, each.permission_type)} {each.principal} from {each.host}"
        f" {_named(Operation, each.operation)} on {_named(PatternType, each.resource_pattern_type)}"
        f" {_named(ResourceType, each.resource_type)} {each.resource_name}"
        for each in request.creations
    )


def _deleted_rules(request: DeleteAclsRequest) -> Named:
    return len(request.filters), (
        f"rules {_named(PermissionType, each.permission_type)} {each.principal_filter or 'anybody'}"
        f" from {each.host_filter or 'anywhere'} {_named(Operation, each.operation)} on"
        f" {_named(PatternType, each.pattern_type_filter)} {_named(ResourceType, each.resource_type_filter)}"
        f" {each.resource_name_filter or ''}"
        for each in request.filters
    )


def _named(kind: type[IntEnum], code: int) -> str:
    """Return the name of a code that a client sent."""
    return kind(code).name if code in kind._value2member_map_ else str(code)


def _users(request: AlterUserScramCredentialsRequest) -> Named:
    deleted = (f"user {each.name}: deleted" for each in request.deletions)
    return len(request.deletions) + len(request.upsertions), chain(
        deleted, (f"user {each.name}: set" for each in request.upsertions)
    )


def _quotas(request: AlterClientQuotasRequest) -> Named:
    return len(request.entries), (
        f"quotas of {_entity(each)}: {few(len(each.ops), (op.key for op in each.ops))}" for each in request.entries
    )


def _entity(entry: RequestEntryData) -> str:
    parts = entry.entity
    names = (f"{each.entity_type}={'(default)' if each.entity_name is None else each.entity_name}" for each in parts)
    return few(len(parts), names, separator=" ")


def _groups(request: Any) -> Named:
    return len(request.groups_names), (f"group {name}" for name in request.groups_names)


def _offsets(request: Any) -> Named:
    return len(request.topics), (f"offsets of group {request.group_id} for {topic.name}" for topic in request.topics)


def _reassignments(request: AlterPartitionReassignmentsRequest) -> Named:
    return len(request.topics), (f"replicas of {topic.name}" for topic in request.topics)


def _elections(request: ElectLeadersRequest) -> Named:
    if request.topic_partitions is None:
        return 1, iter(["leaders of all partitions"])
    return len(request.topic_partitions), (f"leaders of {topic.topic}" for topic in request.topic_partitions)


def _features(request: Any) -> Named:
    updates = request.feature_updates
    return len(updates), (f"feature {each.feature}: {each.max_version_level}" for each in updates)


def _broker(request: Any) -> Named:
    return 1, iter([f"broker {request.broker_id}"])


CHANGES: dict[str, Callable[[Any], Named]] = {
    "CreateTopics": _topics,
    "DeleteTopics": _deleted_topics,
    "CreatePartitions": _topics,
    "DeleteRecords": _records,
    "AlterConfigs": _configs,
    "IncrementalAlterConfigs": _configs,
    "CreateAcls": _created_rules,
    "DeleteAcls": _deleted_rules,
    "AlterUserScramCredentials": _users,
    "AlterClientQuotas": _quotas,
    "DeleteGroups": _groups,
    "OffsetDelete": _offsets,
    "AlterPartitionReassignments": _reassignments,
    "ElectLeaders": _elections,
    "UpdateFeatures": _features,
    "UnregisterBroker": _broker,
}
"""By the name of the API: what a request wants to change."""


class ChangeAudit:
    """Records the changes of all clients: an `Interceptor`."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def __call__(self, handler: Handler) -> Handle:
        describe, handle, api = CHANGES.get(handler.api.name), handler.handle, handler.api
        if describe is None:
            return handle

        def record(context: RequestContext, request: Any, response: Result) -> None:
            if getattr(request, "validate_only", False) or response is None:
                return
            counts = defaultdict[int, int](int)
            error_counter(api.response, context.api_version)(response, counts)
            errors = [ErrorCode(code).name for code in counts if code]
            self._audit.changed(context, api.name, few(*describe(request)), errors)

        async def after(context: RequestContext, request: Any, answer: Awaitable[Result]) -> Result:
            response = await answer
            record(context, request, response)
            return response

        def after_steps(context: RequestContext, request: Any, steps: Steps[Any]) -> Steps[Any]:
            result = yield from steps
            if isinstance(result, Awaitable):
                return after(context, request, result)
            record(context, request, result)
            return result

        def audited(services: Any, context: RequestContext, request: Any) -> Answer:
            answer = handle(services, context, request)
            if is_steps(answer):
                return after_steps(context, request, answer)
            if isinstance(answer, Awaitable):
                return after(context, request, answer)
            record(context, request, cast("Result", answer))
            return answer

        return audited
