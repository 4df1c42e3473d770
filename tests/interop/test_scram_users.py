"""Admin clients set, describe and delete SCRAM users, on a listener without authentication."""

from __future__ import annotations

from collections.abc import Iterator

import kafka
import kafka.admin
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

TIMEOUT = 30
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


@pytest.fixture(autouse=True)
def nobody_is_left(admin: AdminClient) -> Iterator[None]:
    yield
    for mechanism in (SHA_256, SHA_512):
        found = admin.describe_user_scram_credentials().result(TIMEOUT)
        deletions = [
            UserScramCredentialDeletion(name, mechanism)
            for name, described in found.items()
            if mechanism in [info.mechanism for info in described.scram_credential_infos]
        ]
        if deletions:
            for future in admin.alter_user_scram_credentials(deletions).values():
                future.result(TIMEOUT)


def described(admin: AdminClient) -> dict[str, set[tuple[str, int]]]:
    found = admin.describe_user_scram_credentials().result(TIMEOUT)
    return {
        name: {(info.mechanism.name, info.iterations) for info in each.scram_credential_infos}
        for name, each in found.items()
    }


def becomes(expected: object, admin: AdminClient) -> bool:
    """Whether a change becomes visible; Apache Kafka's broker applies it some milliseconds after the response."""
    return any(described(admin) == expected for _ in range(200))


def test_confluent_manages_users(admin: AdminClient) -> None:
    upsertions = [
        UserScramCredentialUpsertion("alice", ScramCredentialInfo(SHA_256, 4096), b"alice-secret"),
        UserScramCredentialUpsertion("bob", ScramCredentialInfo(SHA_512, 10000), b"bob-secret", b"a salt"),
    ]
    for future in admin.alter_user_scram_credentials(upsertions).values():
        future.result(TIMEOUT)
    assert becomes({"alice": {("SCRAM_SHA_256", 4096)}, "bob": {("SCRAM_SHA_512", 10000)}}, admin)

    [future] = admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", SHA_256)]).values()
    future.result(TIMEOUT)
    assert becomes({"bob": {("SCRAM_SHA_512", 10000)}}, admin)


def test_confluent_reports_the_errors(admin: AdminClient) -> None:
    def error(change: UserScramCredentialUpsertion | UserScramCredentialDeletion) -> int:
        [future] = admin.alter_user_scram_credentials([change]).values()
        with pytest.raises(KafkaException) as failed:
            future.result(TIMEOUT)
        code: int = failed.value.args[0].code()
        return code

    few = UserScramCredentialUpsertion("alice", ScramCredentialInfo(SHA_256, 4095), b"secret")
    assert error(few) == KafkaError.UNACCEPTABLE_CREDENTIAL
    assert error(UserScramCredentialDeletion("alice", SHA_256)) == KafkaError.RESOURCE_NOT_FOUND
    [future] = admin.describe_user_scram_credentials(["alice"]).values()
    with pytest.raises(KafkaException) as failed:
        future.result(TIMEOUT)
    assert failed.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_kafka_python_manages_users(bootstrap: str, admin: AdminClient) -> None:
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.alter_user_scram_credentials(
            [
                kafka.admin.UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", "alice-secret"),
                kafka.admin.UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", "bob-secret", iterations=8192),
            ]
        )
        assert becomes({"alice": {("SCRAM_SHA_512", 4096)}, "bob": {("SCRAM_SHA_256", 8192)}}, admin)
        found = client.describe_user_scram_credentials(["bob"])
        assert "8192" in str(found)
        client.alter_user_scram_credentials([kafka.admin.UserScramCredentialDeletion("bob", "SCRAM-SHA-256")])
        assert becomes({"alice": {("SCRAM_SHA_512", 4096)}}, admin)
    finally:
        client.close()
