"""Messages with secrets do not show them, whoever logs them."""

from __future__ import annotations

import pytest

from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.schema import Message


@pytest.mark.parametrize(
    "message",
    [
        SaslAuthenticateRequest(b"\0alice\0alice-secret"),
        SaslAuthenticateResponse(auth_bytes=b"alice-secret"),
        AlterUserScramCredentialsRequest([], [ScramCredentialUpsertion("alice", 1, 4096, b"-secret", b"-secret")]),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_secret_is_not_shown(message: Message) -> None:
    assert "-secret" not in repr(message) + str(message)
    assert "hidden" in repr(message)
