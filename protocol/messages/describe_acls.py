"""DescribeAcls (API key 29)."""

from protocol.schema import Message, Structure, i16, i32, i8, message, string


@message(key=29, versions=(1, 3), flexible_since=2)
class DescribeAclsRequest(Message):
    """DescribeAclsRequest, versions 1–3, flexible from 2."""

    resource_type_filter: i8 = 0
    resource_name_filter: string | None = ""
    pattern_type_filter: i8 = 3
    principal_filter: string | None = ""
    host_filter: string | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


class AclDescription(Structure):
    principal: string = ""
    host: string = ""
    operation: i8 = 0
    permission_type: i8 = 0


class DescribeAclsResource(Structure):
    resource_type: i8 = 0
    resource_name: string = ""
    pattern_type: i8 = 3
    acls: list[AclDescription] = []


@message(key=29, versions=(1, 3), flexible_since=2)
class DescribeAclsResponse(Message):
    """DescribeAclsResponse, versions 1–3, flexible from 2."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    resources: list[DescribeAclsResource] = []
