"""CreateAcls (API key 30): an admin client grants or denies principals operations on resources (KIP-140)."""

from odradek.protocol.schema import Message, Structure, i8, i16, i32, message, string


class AclCreation(Structure):
    resource_type: i8 = 0  # 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user
    resource_name: string = ""
    resource_pattern_type: i8 = 3  # 3 literal, 4 prefix
    principal: string = ""  # type and name: `User:alice`
    host: string = ""  # the client's IP address, `*` for any
    operation: i8 = 0  # 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action, …
    permission_type: i8 = 0  # 2 deny, which wins, 3 allow


@message(key=30, versions=(1, 3), flexible_since=2)
class CreateAclsRequest(Message):
    """Versions 1–3, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896). v1 adds prefixes (KIP-290), v3 the resource type user (KIP-373).
    """

    creations: list[AclCreation] = []


class AclCreationResult(Structure):
    error_code: i16 = 0
    error_message: string | None = ""


@message(key=30, versions=(1, 3), flexible_since=2)
class CreateAclsResponse(Message):
    """Versions 1–3, flexible from 2; results in the order of the request."""

    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = []
