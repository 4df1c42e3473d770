"""AlterUserScramCredentials (API key 51)."""

from protocol.schema import Message, Structure, binary, i16, i32, i8, message, string


class ScramCredentialDeletion(Structure):
    name: string = ""
    mechanism: i8 = 0


class ScramCredentialUpsertion(Structure):
    name: string = ""
    mechanism: i8 = 0
    iterations: i32 = 0
    salt: binary = b""
    salted_password: binary = b""


@message(key=51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsRequest(Message):
    """AlterUserScramCredentialsRequest, version 0, flexible."""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Structure):
    user: string = ""
    error_code: i16 = 0
    error_message: string | None = ""


@message(key=51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsResponse(Message):
    """AlterUserScramCredentialsResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = []
