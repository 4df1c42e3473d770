"""AlterUserScramCredentials (API key 51): an admin client sets or deletes SCRAM credentials of users (KIP-554).

The password itself never travels: the client salts and hashes it.
"""

from odradek.protocol.schema import Message, Structure, binary, i8, i16, i32, message, string


class ScramCredentialDeletion(Structure):
    name: string = ""
    mechanism: i8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512


class ScramCredentialUpsertion(Structure):
    name: string = ""
    mechanism: i8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: i32 = 0  # 4096 to 16384, or UNACCEPTABLE_CREDENTIAL (93)
    salt: binary = b""
    salted_password: binary = b""  # PBKDF2 of the password under this salt (RFC 5802)

    def __repr__(self) -> str:
        return f"ScramCredentialUpsertion({self.name!r}, hidden)"


@message(key=51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsRequest(Message):
    """Version 0, flexible."""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Structure):
    user: string = ""
    error_code: i16 = 0
    error_message: string | None = ""


@message(key=51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = []
