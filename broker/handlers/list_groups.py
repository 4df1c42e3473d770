"""ListGroups (16), versions 0–5: the groups that this broker coordinates, of all types.

From version 4 on (KIP-518) a request may filter by state, from version 5 on (KIP-848) by type; case does not matter,
and unknown names match no group. While a partition is being loaded the answer is COORDINATOR_LOAD_IN_PROGRESS, because
the list would be incomplete; and COORDINATOR_NOT_AVAILABLE while another broker may coordinate one
(`replication.fencing`).

Without the right to describe the cluster, the list has the groups that the client may describe.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows, allows_on_cluster
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(services: Services, context: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    if services.groups.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are being loaded")
    if services.groups.is_fenced:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "another broker may coordinate them: the session ended")
    states = {state.strip().lower() for state in request.states_filter}
    types = {each.strip().lower() for each in request.types_filter}
    may_see_all = allows_on_cluster(services, context, Operation.DESCRIBE)
    rows = []
    for shard in services.groups.shards():
        for group in tuple(shard.groups.values()):
            yield
            if not (may_see_all or allows(services, context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)):
                continue
            if (not states or group.state.lower() in states) and (not types or group.group_type in types):
                rows.append(ListedGroup(group.group_id, group.protocol_type, group.state, group.group_type))
    return ListGroupsResponse(groups=rows)


def error_response(request: ListGroupsRequest, code: ErrorCode, message: str) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=code)
