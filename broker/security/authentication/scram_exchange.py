"""The server's side of SCRAM (RFC 5802; Kafka's `ScramSaslServer`).

| state | message of the client | answer | next state |
|---|---|---|---|
| FIRST | client-first | server-first: nonce, salt, iterations | FINAL |
| FINAL | client-final with nonce, `c=` and proof that are right | server-final: signature | DONE |
| any | anything else | `AuthenticationFailed` | DONE |

An unknown user gets an answer to its first message like any other (`unknown_users`), and fails at the end, with the
same message as for a wrong password. Differs from Kafka, which fails at once: clients could find out which users exist.
Differs from Kafka also in that `c=` must repeat the GS2 header (RFC 5802, section 7), and that `m=` is refused.

A client that authenticates with a delegation token (`tokenauth=true`) is an unknown user, because there are no tokens:
its name must not be looked up among the users.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable

from odradek.broker.randomness import Randomness
from odradek.broker.security.authentication.exchange import (
    OTHER_AUTHORIZATION_ID,
    AuthenticationFailed,
    invalid_credentials,
    quoted,
)
from odradek.broker.security.authentication.unknown_users import UnknownUsers
from odradek.broker.security.principal import USER, Principal
from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.scram import (
    MAXIMUM_ITERATIONS,
    MINIMUM_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    is_proof,
    server_signature,
)
from odradek.protocol.sasl.scram_messages import (
    ClientFinal,
    ClientFirst,
    ServerFinal,
    ServerFirst,
    auth_message,
)

FindCredential = Callable[[str], ScramCredential | None]
"""Looks a user up by name; None: there is none."""

_NONCE_BYTES = 24


class ScramExchange:
    """One exchange of SCRAM."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find_credential: FindCredential,
        unknown_users: UnknownUsers,
        randomness: Randomness,
    ) -> None:
        self._mechanism = mechanism
        self._find_credential = find_credential
        self._unknown_users = unknown_users
        self._nonce = urlsafe_b64encode(randomness.random_bytes(_NONCE_BYTES)).decode()
        self._is_started = False
        self._challenge: _Challenge | None = None
        self.user = ""
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def step(self, token: bytes) -> bytes:
        challenge, self._challenge = self._challenge, None  # each challenge is answered once
        try:
            if challenge is not None:
                return self._finish(challenge, ClientFinal.decode(token))
            if self._is_started:
                raise self._failure("a message after the last one")
            self._is_started = True
            return self._start(ClientFirst.decode(token))
        except SaslMessageError as error:
            raise self._failure(str(error)) from None

    def _start(self, first: ClientFirst) -> bytes:
        name = self.user = first.username
        if not name.isascii():
            # As in Kafka. Without SASLprep two spellings of one name would be two users.
            raise self._failure(f"the name of user {quoted(name)} is not ASCII")
        if first.authorization_id not in ("", name):
            raise AuthenticationFailed(
                OTHER_AUTHORIZATION_ID,
                f"user {quoted(name)} wants to act for {quoted(first.authorization_id)}",
            )
        invented = self._unknown_users.credential(self._mechanism, name)
        found = self._find_credential(name)
        is_known = found is not None and not first.is_token
        credential = found if found is not None and is_known else invented
        if not MINIMUM_ITERATIONS <= credential.iterations <= MAXIMUM_ITERATIONS:
            raise self._failure(f"the credential of user {quoted(name)} has {credential.iterations} iterations")
        answer = ServerFirst(first.nonce + self._nonce, credential.salt, credential.iterations)
        self._challenge = _Challenge(first, answer, credential, is_known=is_known)
        return answer.encode()

    def _finish(self, challenge: _Challenge, final: ClientFinal) -> bytes:
        name = challenge.first.username
        if not hmac.compare_digest(final.nonce.encode(), challenge.answer.nonce.encode()):
            raise self._failure(f"user {quoted(name)} sent a nonce that is not that of this exchange")
        if not hmac.compare_digest(final.channel_binding, challenge.first.header.encode()):
            raise self._failure(f"user {quoted(name)} sent a channel binding that does not match its first message")
        signed = auth_message(challenge.first, challenge.answer, final)
        is_right = is_proof(self._mechanism, challenge.credential, signed, final.proof)
        if not is_right or not challenge.is_known:
            what = "wrong password of user" if challenge.is_known else "unknown user"
            raise self._failure(f"{what} {quoted(name)}")
        self.principal = Principal(USER, name)
        return ServerFinal(server_signature(self._mechanism, challenge.credential.server_key, signed)).encode()

    def _failure(self, reason: str) -> AuthenticationFailed:
        return AuthenticationFailed(invalid_credentials(self._mechanism.name), reason)


class _Challenge:
    """The state between the two messages of a client."""

    __slots__ = ("answer", "credential", "first", "is_known")

    def __init__(self, first: ClientFirst, answer: ServerFirst, credential: ScramCredential, *, is_known: bool) -> None:
        self.first = first
        self.answer = answer
        self.credential = credential
        self.is_known = is_known
