"""DescribeUserScramCredentials (API key 50)."""

from protocol.schema import Message, Structure, i16, i32, i8, message, string


class UserName(Structure):
    name: string = ""


@message(key=50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsRequest(Message):
    """DescribeUserScramCredentialsRequest, version 0, flexible."""

    users: list[UserName] | None = []


class CredentialInfo(Structure):
    mechanism: i8 = 0
    iterations: i32 = 0


class DescribeUserScramCredentialsResult(Structure):
    user: string = ""
    error_code: i16 = 0
    error_message: string | None = ""
    credential_infos: list[CredentialInfo] = []


@message(key=50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsResponse(Message):
    """DescribeUserScramCredentialsResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
