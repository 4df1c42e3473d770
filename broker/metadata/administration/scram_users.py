"""Setting and deleting the credentials of SCRAM users (KIP-554; Kafka's `ScramControlManager`).

A request alters each user once: if it names one twice, even for two mechanisms, that user is DUPLICATE_RESOURCE and
stays as it is. The other users are altered, in transactions of up to `_BATCH`, each all or nothing; Kafka alters all
users of a request in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.scram_users import ScramSecret, ScramUser, StoredScramUser
from odradek.broker.metadata.store.store import Cmp, Delete, Op, Put, absent, still
from odradek.broker.metadata.values import encode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from odradek.protocol.sasl.scram import (
    MAXIMUM_ITERATIONS,
    MINIMUM_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
)

SECRET_BYTES: Final = 32
LONGEST_NAME: Final = 1024
"""In bytes of UTF-8, inclusive. A message of SCRAM has at most 16 KiB, and Kafka's header of a string allows 32 KiB."""
LONGEST_SALT: Final = 1024
"""In bytes, inclusive. Kafka's tools make 26, librdkafka 64."""
_BATCH: Final = 100
"""Each user is one comparison and one operation, of 128 at most (`MAX_OPERATIONS`)."""
_MECHANISMS: Final = {mechanism.id: mechanism for mechanism in SCRAM_MECHANISMS.values()}

_Change = tuple[ScramMechanism, ScramCredential | None]
"""The mechanism, and the new credential; None deletes it."""


class ScramAlterations:
    """The alterations of one request: add them all (`delete`, `upsert`), then `commit`."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._changes: dict[str, _Change] = {}
        self._outcomes: dict[str, KafkaError | None] = {}

    def delete(self, name: str, mechanism: int) -> None:
        """Delete a user's credential."""
        if self._is_first(name):
            try:
                self._changes[name] = (_checked_mechanism(name, mechanism), None)
                self._check_exists(name)
            except KafkaError as error:
                self._fail(name, error.fresh())

    def upsert(self, change: ScramCredentialUpsertion) -> None:
        """Set a user's credential."""
        if self._is_first(change.name):
            try:
                self._changes[change.name] = (_checked_mechanism(change.name, change.mechanism), _credential(change))
            except KafkaError as error:
                self._fail(change.name, error.fresh())

    async def commit(self) -> Mapping[str, KafkaError | None]:
        """Store what is valid. Returns an error for each user that was not altered, None for the others."""
        remaining = iter(list(self._changes))
        while names := list(islice(remaining, _BATCH)):
            try:
                await self._commit(names)
            except KafkaError as error:
                self._outcomes.update(dict.fromkeys(names, error.fresh()))
        return self._outcomes

    async def _commit(self, names: list[str]) -> None:
        keys = self._metadata.keys
        while True:
            users = self._metadata.image.scram_users.users
            when: list[Cmp] = []
            then: list[Op] = []
            for name in names:
                try:
                    op = self._operation(name, users.get(name))
                except KafkaError as error:  # deleted meanwhile
                    self._outcomes[name] = error.fresh()
                    continue
                when.append(still(keys.scram_user(name), users[name].revision if name in users else 0))
                then.append(op)
                self._outcomes[name] = None
            if not then or (await self._metadata.commit(when, then)).ok:
                return

    def _operation(self, name: str, stored: StoredScramUser | None) -> Op:
        mechanism, credential = self._changes[name]
        key = self._metadata.keys.scram_user(name)
        credentials = {} if stored is None else dict(stored.user.credentials)
        if credential is not None:
            credentials[mechanism.name] = credential
        else:
            self._check_exists(name)
            del credentials[mechanism.name]
        return Put(key, encode(ScramUser(credentials))) if credentials else Delete(key)

    def _is_first(self, name: str) -> bool:
        """Return whether this is the first change of a user; a second one revokes the first."""
        if name in self._outcomes:
            return False
        if name in self._changes:
            self._fail(
                name,
                KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                ),
            )
            return False
        return True

    def _check_exists(self, name: str) -> None:
        mechanism, _ = self._changes[name]
        if self._metadata.image.scram_users.credential(mechanism.name, name) is None:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")

    def _fail(self, name: str, error: KafkaError) -> None:
        self._changes.pop(name, None)
        self._outcomes[name] = error


async def unknown_users_secret(metadata: Metadata) -> bytes:
    """Return the cluster's secret for salts of unknown users; the first broker that needs it creates it.

    Raises `KafkaError` KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT.
    """
    key = metadata.keys.scram_secret
    while (secret := metadata.image.scram_users.secret) is None:
        made = ScramSecret(metadata.randomness.random_bytes(SECRET_BYTES))
        await metadata.commit((absent(key),), (Put(key, encode(made)),))
    return secret.secret


def _checked_mechanism(name: str, mechanism: int) -> ScramMechanism:
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if len(name.encode()) > LONGEST_NAME:
        # Differs from Kafka, because every name that a client chooses has a bound.
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Username must not have more than {LONGEST_NAME} bytes")
    found = _MECHANISMS.get(mechanism)
    if found is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return found


def _credential(change: ScramCredentialUpsertion) -> ScramCredential:
    mechanism = _MECHANISMS[change.mechanism]
    if change.iterations < MINIMUM_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAXIMUM_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    # Differs from Kafka, which stores credentials that no client can use, or that protect nothing.
    if not 0 < len(change.salt) <= LONGEST_SALT:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salt must have 1 to {LONGEST_SALT} bytes")
    if len(change.salted_password) != mechanism.digest_size:
        raise KafkaError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salted password must have {mechanism.digest_size} bytes"
        )
    return ScramCredential.from_salted_password(
        mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
    )
