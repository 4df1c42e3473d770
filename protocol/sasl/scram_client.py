"""The client's side of one SCRAM exchange, without I/O (RFC 5802, section 3; Kafka's `ScramSaslClient`).

```
client = ScramClient(SCRAM_SHA_256, "alice", "secret", nonce)
send client.first(), receive m1      send client.final(m1), receive m2      client.verify(m2)
```

The exchange authenticates both sides: after `verify` the client knows that the server has the user's credential. A
client that skips it may talk to anybody.
"""

from __future__ import annotations

import hmac
from typing import Final

from odradek.protocol.plural import pluralize
from odradek.protocol.sasl import scram
from odradek.protocol.sasl.errors import SaslRefusedError, UntrustedServerError
from odradek.protocol.sasl.scram_messages import (
    TOKEN_AUTHENTICATION,
    ClientFinal,
    ClientFirst,
    ServerFinal,
    ServerFirst,
    auth_message,
)

MAXIMUM_CLIENT_ITERATIONS: Final = 1_000_000
"""Inclusive. A server may not occupy a client for longer than about a second; Kafka stores at most 16,384."""


class ScramClient:
    """One exchange: call `first`, `final` and `verify` once each, in this order.

    `nonce` is unpredictable and used once: at least 18 random bytes as base64 or hex. With `token` the name and
    password are the id and HMAC of a delegation token (KIP-48). Raises ValueError for a name or nonce that no message
    can have.
    """

    def __init__(
        self,
        mechanism: scram.ScramMechanism,
        username: str,
        password: str,
        nonce: str,
        *,
        authorization_id: str = "",
        token: bool = False,
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        extensions = (TOKEN_AUTHENTICATION,) if token else ()
        self._first = ClientFirst(username, nonce, authorization_id, extensions)
        self._message = self._first.encode()
        self._signature: bytes | None = None

    def first(self) -> bytes:
        """Return the client's first message."""
        return self._message

    def final(self, server_first: bytes) -> bytes:
        """Return the client's final message. Computes PBKDF2: a millisecond for 4,096 iterations.

        Raises `SaslMessageError`, or `UntrustedServerError` if the server's nonce does not start with the client's, or
        its iterations are outside 4,096 to `MAXIMUM_CLIENT_ITERATIONS`.
        """
        theirs = ServerFirst.decode(server_first)
        if not theirs.nonce.startswith(self._first.nonce) or len(theirs.nonce) == len(self._first.nonce):
            raise UntrustedServerError("the server's nonce does not continue the client's")
        if not scram.MINIMUM_ITERATIONS <= theirs.iterations <= MAXIMUM_CLIENT_ITERATIONS:
            raise UntrustedServerError(
                f"the server asks for {pluralize(theirs.iterations, 'iteration')}; {scram.MINIMUM_ITERATIONS} to"
                f" {MAXIMUM_CLIENT_ITERATIONS} are accepted"
            )
        salted = scram.salted_password(self._mechanism, self._password, theirs.salt, theirs.iterations)
        unproved = ClientFinal(self._first.header.encode(), theirs.nonce, b"")
        signed = auth_message(self._first, theirs, unproved)
        key = scram.ScramCredential.from_salted_password(
            self._mechanism, salted, theirs.salt, theirs.iterations
        ).server_key
        self._signature = scram.server_signature(self._mechanism, key, signed)
        proof = scram.client_proof(self._mechanism, salted, signed)
        return ClientFinal(unproved.channel_binding, theirs.nonce, proof).encode()

    def verify(self, server_final: bytes) -> None:
        """Check the server's signature.

        Raises `SaslMessageError`, `SaslRefusedError` if the message has an error in place of a signature, or
        `UntrustedServerError` if the signature is wrong or the exchange has not come so far.
        """
        theirs = ServerFinal.decode(server_final)
        if theirs.error:
            raise SaslRefusedError("the server's final message reports an error")
        if self._signature is None or not hmac.compare_digest(theirs.signature, self._signature):
            raise UntrustedServerError("the server's signature is wrong: it does not have this user's credential")
