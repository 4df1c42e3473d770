"""The exceptions of SASL messages. None has a password, a token, a proof or other bytes of the peer in its text.

```
ProtocolError
└── RemoteProtocolError
    └── SaslError               the peer's message cannot be accepted
        ├── SaslMessageError        it does not have the form that its mechanism demands
    │   └── MissingPasswordError    it names a user, and no password
        ├── SaslRefusedError        the server's final message says that the authentication failed (a client sees it)
        └── UntrustedServerError    the server did not prove that it has this user's credential (a client sees it)
```
"""

from __future__ import annotations

from odradek.protocol.errors import RemoteProtocolError


class SaslError(RemoteProtocolError):
    """The peer's message cannot be accepted; its connection must not be used any more."""


class SaslMessageError(SaslError):
    """A message that does not have the form that its mechanism demands."""


class MissingPasswordError(SaslMessageError):
    """A message of PLAIN with a user and without a password; the text is Kafka's."""

    def __init__(self, username: str) -> None:
        super().__init__("Authentication failed: password not specified")
        self.username = username


class SaslRefusedError(SaslError):
    """The server's final message says that the authentication failed."""


class UntrustedServerError(SaslError):
    """The server did not prove that it has the user's credential, or asks for too few iterations."""
