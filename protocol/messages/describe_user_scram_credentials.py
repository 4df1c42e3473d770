"""DescribeUserScramCredentials (API key 50): an admin client reads which SCRAM credentials users have (KIP-554).

Salts and keys are never returned.
"""

from odradek.protocol.schema import Message, Structure, i8, i16, i32, message, string


class UserName(Structure):
    name: string = ""


@message(key=50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsRequest(Message):
    """Version 0, flexible."""

    users: list[UserName] | None = []  # None or empty for all


class CredentialInfo(Structure):
    mechanism: i8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: i32 = 0


class DescribeUserScramCredentialsResult(Structure):
    user: string = ""
    error_code: i16 = 0  # RESOURCE_NOT_FOUND (91) for a user without credentials
    error_message: string | None = ""
    credential_infos: list[CredentialInfo] = []


@message(key=50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
