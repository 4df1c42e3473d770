"""The SCRAM users of the cluster: their value in the metadata store, and their part of the image.

```
/scram/users/<name>    ScramUser: {"credentials": {"SCRAM-SHA-256": {salt, stored_key, server_key, iterations}}}
/scram/secret          ScramSecret: from which salts for unknown users are derived
```

Bytes are base64. The password is not stored, but a reader of the store can search for it: the store is a secret, too. A
user is one key with the credentials of all its mechanisms, and exists as long as it has one.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV
from odradek.protocol.sasl.scram import ScramCredential


class ScramUser(msgspec.Struct, frozen=True):
    """The credentials of one user, by mechanism."""

    credentials: dict[str, ScramCredential]


class ScramSecret(msgspec.Struct, frozen=True):
    """Random bytes that all brokers of the cluster know, and no client."""

    secret: bytes

    def __repr__(self) -> str:
        return "ScramSecret(hidden)"


decode_scram_user = msgspec.json.Decoder(ScramUser).decode
decode_scram_secret = msgspec.json.Decoder(ScramSecret).decode


class StoredScramUser(NamedTuple):
    """A user, and the revision of its key, which a transaction compares."""

    user: ScramUser
    revision: int


class ScramUsers(msgspec.Struct, frozen=True):
    """The users by name, and the secret (None: no broker has needed it yet). Immutable, as the image that it is in."""

    users: dict[str, StoredScramUser] = {}
    secret: ScramSecret | None = None

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """Return the credential of a user for a mechanism."""
        stored = self.users.get(name)
        return None if stored is None else stored.user.credentials.get(mechanism)


class ScramUsersBuilder:
    """Creates the next `ScramUsers` from the last one and the changes of its keys."""

    def __init__(self, last: ScramUsers, keys: Keys) -> None:
        self._keys = keys
        self._users = dict(last.users)
        self._secret = last.secret

    def apply(self, key: bytes, kv: KV | None) -> None:
        """Apply the change of a key below /scram. Raises ValueError or `msgspec.MsgspecError` if it is unreadable."""
        if key == self._keys.scram_secret:
            self._secret = None if kv is None else decode_scram_secret(kv.value)
        elif key.startswith(self._keys.scram_users):
            name = key[len(self._keys.scram_users) :].decode()
            if kv is None:
                self._users.pop(name, None)
            else:
                self._users[name] = StoredScramUser(decode_scram_user(kv.value), kv.mod_revision)

    def build(self) -> ScramUsers:
        return ScramUsers(self._users, self._secret)
