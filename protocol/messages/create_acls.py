"""CreateAcls (API key 30)."""

from protocol.schema import Message, Structure, i16, i32, i8, message, string


class AclCreation(Structure):
    resource_type: i8 = 0
    resource_name: string = ""
    resource_pattern_type: i8 = 3
    principal: string = ""
    host: string = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=30, versions=(1, 3), flexible_since=2)
class CreateAclsRequest(Message):
    """CreateAclsRequest, versions 1–3, flexible from 2."""

    creations: list[AclCreation] = []


class AclCreationResult(Structure):
    error_code: i16 = 0
    error_message: string | None = ""


@message(key=30, versions=(1, 3), flexible_since=2)
class CreateAclsResponse(Message):
    """CreateAclsResponse, versions 1–3, flexible from 2."""

    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = []
