"""DeleteAcls (API key 31): an admin client removes every access rule that a filter matches (KIP-140)."""

from odradek.protocol.schema import Message, Structure, i8, i16, i32, message, string


class DeleteAclsFilter(Structure):
    resource_type_filter: i8 = 0  # codes as in CreateAcls; here, 1 is any
    resource_name_filter: string | None = ""  # None for any, as are principal and host
    pattern_type_filter: i8 = 3  # 1 any, 2 all patterns that cover the name, 3 literal, 4 prefix
    principal_filter: string | None = ""
    host_filter: string | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=31, versions=(1, 3), flexible_since=2)
class DeleteAclsRequest(Message):
    """Versions 1–3, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896). v1 adds the pattern type (KIP-290), v3 the resource type user (KIP-373).
    """

    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Structure):
    error_code: i16 = 0  # an error in removing this rule
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
    """Versions 1–3, flexible from 2; results in the order of the filters.

    v1 adds the pattern type (KIP-290), v3 may contain users (KIP-373).
    """

    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
