"""The credentials that SCRAM invents for users that do not exist, so that clients cannot find out which users exist.

A server must send a salt before it has seen a proof. For an unknown user it sends one that is derived from the name and
a secret by HMAC: always the same for the same name, and of the form that Kafka's tools and `odradek users` give their
salts, 130 bits in base 36. The keys are the same for all names, because they are never sent; no password has them, so
every proof is wrong.

The secret is one of the cluster, not of a broker: two brokers that sent different salts for one name would betray that
it does not exist. It must be stored, because a salt that changes with a restart betrays the same. And it must be
random: everybody can read the cluster's id. The metadata store has it.

What still differs: users whose salts another tool chose, and users with more iterations than the default.
"""

from __future__ import annotations

import hmac
from typing import Final

from odradek.protocol.plural import pluralize
from odradek.protocol.sasl.scram import DEFAULT_ITERATIONS, ScramCredential, ScramMechanism

SECRET_BYTES: Final = 32
_SALT_BITS = 130
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class UnknownUsers:
    """Invents the credential of a user that does not exist."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SECRET_BYTES:
            raise ValueError(
                f"the secret of unknown users has {pluralize(len(secret), 'byte')}, and needs {SECRET_BYTES}"
            )
        self._secret = secret
        self._stored_key = self._derive("stored key")
        self._server_key = self._derive("server key")

    def credential(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Return the credential of `name`, the same for each call."""
        return ScramCredential(
            salt_from(self._derive(f"{mechanism.name}\0salt\0{name}")),
            self._stored_key[: mechanism.digest_size],
            self._server_key[: mechanism.digest_size],
            DEFAULT_ITERATIONS,
        )

    def _derive(self, purpose: str) -> bytes:
        return hmac.digest(self._secret, purpose.encode(), "sha512")


def salt_from(randomness: bytes) -> bytes:
    """Make a salt of at least 17 random bytes, as Kafka's tools do: 130 bits in base 36, as ASCII."""
    number = int.from_bytes(randomness, "big") % (1 << _SALT_BITS)
    digits: list[str] = []
    while number or not digits:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode()
