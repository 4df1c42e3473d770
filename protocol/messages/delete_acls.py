"""DeleteAcls (API key 31)."""

from protocol.schema import Message, Structure, i16, i32, i8, message, string


class DeleteAclsFilter(Structure):
    resource_type_filter: i8 = 0
    resource_name_filter: string | None = ""
    pattern_type_filter: i8 = 3
    principal_filter: string | None = ""
    host_filter: string | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=31, versions=(1, 3), flexible_since=2)
class DeleteAclsRequest(Message):
    """DeleteAclsRequest, versions 1–3, flexible from 2."""

    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""
    pattern_type: i8 = 3
    principal: string = ""
    host: string = ""
    operation: i8 = 0
    permission_type: i8 = 0


class DeleteAclsFilterResult(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@message(key=31, versions=(1, 3), flexible_since=2)
class DeleteAclsResponse(Message):
    """DeleteAclsResponse, versions 1–3, flexible from 2."""

    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
