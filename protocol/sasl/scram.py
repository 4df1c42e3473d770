"""The computations of SCRAM (RFC 5802, RFC 7677), and the credential that a server stores of a user.

```
SaltedPassword  = PBKDF2-HMAC(password, salt, iterations)
ClientKey       = HMAC(SaltedPassword, "Client Key")        StoredKey = H(ClientKey)
ServerKey       = HMAC(SaltedPassword, "Server Key")
AuthMessage     = client-first-message-bare "," server-first-message "," client-final-message-without-proof
ClientProof     = ClientKey XOR HMAC(StoredKey, AuthMessage)
ServerSignature = HMAC(ServerKey, AuthMessage)
```

A server that stores StoredKey and ServerKey can check a proof and sign, but cannot log in as the user elsewhere.
Passwords are used as UTF-8 without SASLprep, as by Kafka (`ScramFormatter.normalize`) and librdkafka.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import msgspec

MINIMUM_ITERATIONS: Final = 4096
"""The least that Kafka and RFC 7677 allow."""
MAXIMUM_ITERATIONS: Final = 16384
"""The most that Kafka stores for a user (`ScramMechanism`)."""
DEFAULT_ITERATIONS: Final = MINIMUM_ITERATIONS
"""What Kafka's tools use if the number is not given."""


class ScramMechanism(msgspec.Struct, frozen=True):
    """A SCRAM mechanism: its name in SASL, its number in Kafka's messages and its hash function.

    Every key, proof and signature has `digest_size` bytes.
    """

    name: str
    id: int
    hash_name: str
    digest_size: int


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256", 32)
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512", 64)
SCRAM_MECHANISMS: Final = {mechanism.name: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}


class ScramCredential(msgspec.Struct, frozen=True):
    """What a server stores of a user for one mechanism. The password is not in it, but can be searched for with it.

    Brokers store it as JSON, with the names of these fields.
    """

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential(hidden)"

    @classmethod
    def from_password(
        cls, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = DEFAULT_ITERATIONS
    ) -> ScramCredential:
        """Compute the credential of a password. Takes one to ten milliseconds, on purpose."""
        return cls.from_salted_password(
            mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations
        )

    @classmethod
    def from_salted_password(
        cls, mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
    ) -> ScramCredential:
        """Compute the credential of a salted password, which is what AlterUserScramCredentials has."""
        stored_key = hashlib.new(mechanism.hash_name, client_key(mechanism, salted)).digest()
        return cls(salt, stored_key, _hmac(mechanism, salted, b"Server Key"), iterations)


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return _hmac(mechanism, salted, b"Client Key")


def client_proof(mechanism: ScramMechanism, salted: bytes, auth_message: bytes) -> bytes:
    """Compute the proof by which a client shows that it has the password."""
    key = client_key(mechanism, salted)
    stored_key = hashlib.new(mechanism.hash_name, key).digest()
    return _xor(key, _hmac(mechanism, stored_key, auth_message))


def is_proof(mechanism: ScramMechanism, credential: ScramCredential, auth_message: bytes, proof: bytes) -> bool:
    """Return whether the sender of `proof` has the password of `credential`. Compares in constant time."""
    if len(proof) != mechanism.digest_size:
        return False
    key = _xor(proof, _hmac(mechanism, credential.stored_key, auth_message))
    return hmac.compare_digest(hashlib.new(mechanism.hash_name, key).digest(), credential.stored_key)


def server_signature(mechanism: ScramMechanism, server_key: bytes, auth_message: bytes) -> bytes:
    """Compute the signature by which a server shows that it has the user's credential."""
    return _hmac(mechanism, server_key, auth_message)


def _hmac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes([a ^ b for a, b in zip(left, right, strict=True)])
