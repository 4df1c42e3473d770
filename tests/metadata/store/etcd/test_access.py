"""Users with passwords, and certificates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.etcd.wire import bytes_field, message_field, number_field
from odradek.broker.metadata.store.store import MetadataStore, Put, StoreAccessError, StoreUnreachableError, prefix_end
from tests.metadata.store.etcd.certificates import Certificates
from tests.metadata.store.etcd.conftest import Open
from tests.metadata.store.etcd.workload import Workload
from tests.peers import etcd

pytestmark = etcd.MARKS

_PREFIX = b"workload/"
_READ_AND_WRITE = 2


async def _administer(store: EtcdStore, method: str, *texts: str, rest: bytes = b"") -> None:
    fields = [bytes_field(i + 1, text.encode()) for i, text in enumerate(texts)]
    await store.client.read(f"/etcdserverpb.Auth/{method}", b"".join(fields) + rest)


@pytest.fixture(scope="module")
def _guarded() -> Iterator[etcd.Cluster]:
    with etcd.running(1, "--bcrypt-cost=4") as cluster:
        yield cluster


@pytest.fixture
async def guarded(_guarded: etcd.Cluster, open_store: Open) -> etcd.Cluster:
    """A member on which the user `odradek` may read and write under one prefix."""
    store = open_store(*_guarded.endpoints, username="root", password="root's")
    try:
        await store.range(b"")
    except StoreAccessError:
        pytest.fail("root is refused")
    users, _ = await store.range(b"users exist")
    if not users:
        permission = number_field(1, _READ_AND_WRITE) + bytes_field(2, _PREFIX) + bytes_field(3, prefix_end(_PREFIX))
        await store.txn((), (Put(b"users exist", b""),))
        await _administer(store, "UserAdd", "root", "root's")
        await _administer(store, "RoleAdd", "root")
        await _administer(store, "UserGrantRole", "root", "root")
        await _administer(store, "UserAdd", "odradek", "secret")
        await _administer(store, "RoleAdd", "broker")
        await _administer(store, "RoleGrantPermission", "broker", rest=message_field(2, permission))
        await _administer(store, "UserGrantRole", "odradek", "broker")
        await _administer(store, "AuthEnable")
    return _guarded


async def _change_password(guarded: etcd.Cluster, open_store: Open) -> None:
    """To the same one: every token of the user becomes invalid."""
    root = open_store(*guarded.endpoints, username="root", password="root's")
    await _administer(root, "UserChangePassword", "odradek", "secret")


async def test_a_user_with_a_password_has_the_permissions_of_the_user(guarded: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*guarded.endpoints, username="odradek", password="secret")

    await store.check_server(_PREFIX)
    async with Workload(store) as workload:
        await workload.goes_on()
    with pytest.raises(StoreAccessError, match=r"permission denied.*metadata\.etcd\.namespace"):
        await store.range(b"elsewhere")
    with pytest.raises(StoreAccessError, match="permission denied"):
        await store.txn((), (Put(b"elsewhere", b""),))
    assert store.counts.access_refused == 2


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"username": "odradek", "password": "wrong"}, r"authentication failed.*correct metadata\.etcd\.username"),
        ({"username": "nobody", "password": "secret"}, r"authentication failed.*correct metadata\.etcd\.username"),
        ({}, r"set metadata\.etcd\.username"),
    ],
    ids=["wrong password", "unknown user", "no user"],
)
async def test_a_wrong_user_is_refused(
    guarded: etcd.Cluster, open_store: Open, user: dict[str, str], message: str
) -> None:
    store = open_store(*guarded.endpoints, **user)

    for call in (store.check_server(_PREFIX), store.txn((), (Put(_PREFIX, b""),)), store.session(2)):
        with pytest.raises(StoreAccessError, match=message):
            await call


@pytest.mark.parametrize(("interval", "lines"), [(60, 1), (0, 4)])
async def test_a_repeated_refusal_is_logged_once_in_a_while(
    guarded: etcd.Cluster,
    open_store: Open,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    interval: int,
    lines: int,
) -> None:
    monkeypatch.setattr("odradek.broker.metadata.store.etcd.client.REFUSAL_INTERVAL", interval)
    store = open_store(*guarded.endpoints, username="odradek", password="secret")
    with caplog.at_level(logging.ERROR):
        for prefix in (b"elsewhere", b"elsewhere", b"elsewhere", _PREFIX, b"elsewhere"):
            try:
                await store.range(prefix)
            except StoreAccessError:
                continue

    assert len(caplog.records) == lines
    assert store.counts.access_refused == 4
    assert "secret" not in caplog.text


async def test_a_token_that_has_become_invalid_is_renewed(guarded: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*guarded.endpoints, username="odradek", password="secret")
    async with Workload(store) as workload:
        for _ in range(3):
            await _change_password(guarded, open_store)
            await workload.goes_on()

        assert not workload.session.lost.is_set()
    assert store.counts.access_refused == store.counts.unknown_outcomes == 0


async def test_a_watch_renews_an_invalid_token(guarded: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*guarded.endpoints, username="odradek", password="secret")
    revision = (await store.txn((), (Put(_PREFIX + b"a", b""),))).revision
    await _change_password(guarded, open_store)

    watch = store.watch(_PREFIX + b"a", revision - 1)

    batch = await asyncio.wait_for(anext(watch), 30)
    assert (batch.revision, len(batch.changes)) == (revision, 1)


async def test_the_tokens_of_a_member_that_restarts_are_renewed(guarded: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*guarded.endpoints, username="odradek", password="secret")
    async with Workload(store) as workload:
        guarded.members[0].kill()
        guarded.members[0].start(wait=False)

        await workload.goes_on()

        assert not workload.session.lost.is_set()


async def test_a_watch_without_permission_waits_for_it(guarded: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*guarded.endpoints, username="odradek", password="secret")
    root = open_store(*guarded.endpoints, username="root", password="root's")
    revision = (await root.txn((), (Put(b"granted later", b""),))).revision
    watch = store.watch(b"granted later", revision - 1)
    waiting = asyncio.ensure_future(anext(watch))
    while not store.counts.access_refused:
        await asyncio.wait([waiting], timeout=0.01)
    permission = number_field(1, _READ_AND_WRITE) + bytes_field(2, b"granted later") + bytes_field(3, b"granted lates")

    await _administer(root, "RoleGrantPermission", "broker", rest=message_field(2, permission))

    assert (await asyncio.wait_for(waiting, 30)).revision == revision


async def test_a_password_is_ignored_if_etcd_requires_none(one: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*one.endpoints, username="odradek", password="secret")

    assert (await store.txn((), (Put(b"a", b""),))).ok


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(certificates: Certificates) -> Iterator[etcd.Cluster]:
    """A member that talks to clients with a certificate only."""
    flags = {
        "cert-file": "server.pem",
        "key-file": "server.key",
        "trusted-ca-file": "authority.pem",
        "client-cert-auth": None,
    }
    options = [f"--{flag}" + (f"={certificates.path(name)}" if name else "") for flag, name in flags.items()]
    with etcd.running(1, *options, scheme="https") as cluster:
        yield cluster


async def test_both_sides_prove_who_they_are(
    encrypted: etcd.Cluster, certificates: Certificates, open_store: Open
) -> None:
    store = open_store(
        *encrypted.endpoints,
        ca_certificates=certificates.read("authority.pem"),
        certificate=certificates.read("client.pem"),
        key=certificates.read("client.key"),
    )
    async with Workload(store) as workload:
        await workload.goes_on()


@pytest.mark.parametrize(
    ("authority", "client"),
    [("foreign", "client"), ("authority", "stranger"), ("authority", "")],
    ids=["the server is not trusted", "the client is not trusted", "no certificate of the client"],
)
async def test_a_wrong_certificate_is_refused(
    encrypted: etcd.Cluster, certificates: Certificates, open_store: Open, authority: str, client: str
) -> None:
    store = open_store(
        *encrypted.endpoints,
        ca_certificates=certificates.read(f"{authority}.pem"),
        certificate=certificates.read(f"{client}.pem") if client else None,
        key=certificates.read(f"{client}.key") if client else None,
    )

    with pytest.raises(StoreAccessError, match="do not trust each other"):
        await _reached(store)
    assert store.counts.access_refused == 1


@pytest.mark.parametrize("part", ["ca_certificates", "certificate", "key"])
async def test_a_file_that_is_no_certificate_is_refused(
    encrypted: etcd.Cluster, certificates: Certificates, open_store: Open, part: str
) -> None:
    """It would never become one, however long the broker waits."""
    pem = {
        "ca_certificates": certificates.read("authority.pem"),
        "certificate": certificates.read("client.pem"),
        "key": certificates.read("client.key"),
    }
    store = open_store(*encrypted.endpoints, **(pem | {part: b"no PEM"}))

    with pytest.raises(StoreAccessError, match=r"metadata\.etcd\.ca\.file, .*key\.file cannot be used"):
        await store.check_server(b"a")


async def _reached(store: EtcdStore) -> None:
    """A server may close the connection before its reason is read; the next attempt has the reason."""
    while True:
        try:
            await store.check_server(b"a")
        except StoreUnreachableError:
            continue


async def test_without_encryption_an_encrypted_member_cannot_be_reached(
    encrypted: etcd.Cluster, open_store: Open
) -> None:
    store: MetadataStore = open_store(*encrypted.endpoints)

    with pytest.raises(StoreUnreachableError):
        await store.range(b"a")
