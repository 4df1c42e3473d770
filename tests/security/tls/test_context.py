"""Contexts made of settings: what they negotiate, whom they let in, and what is refused."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from odradek.broker.security.tls import context as context_module
from odradek.broker.security.tls.cipher_suites import TLS_1_3_SUITES
from odradek.broker.security.tls.context import make_context
from odradek.broker.security.tls.settings import ClientAuth, TlsSettings, TlsSettingsError
from tests.peers.certificates import DAY, Authority, Issued, common_name, now
from tests.security.tls.handshakes import client_context, handshake


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def settings_for(issued: Issued, **others: Any) -> TlsSettings:
    return TlsSettings(
        keystore_type="PEM",
        keystore_key=issued.key_pem(),
        keystore_certificate_chain=issued.chain_pem,
        **others,
    )


def trusting(authority: Authority, client_auth: ClientAuth, **others: Any) -> TlsSettings:
    return settings_for(
        authority.server(),
        truststore_type="PEM",
        truststore_certificates=authority.pem,
        client_auth=client_auth,
        **others,
    )


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_and_both_kinds_of_keys_work(authority: Authority, kind: Any, version: str) -> None:
    context = make_context(settings_for(authority.server(kind), enabled_protocols=(version,)))
    assert handshake(context, client_context(authority)).version == version


def test_an_edwards_key_works(authority: Authority) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(common_name("localhost"))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now() - DAY)
        .not_valid_after(now() + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    handshake(make_context(settings_for(Issued(key, certificate))), client_context(authority))


def test_intermediate_certificates_are_sent(authority: Authority) -> None:
    issued = Authority("middle", parent=authority).server()
    handshake(make_context(settings_for(issued)), client_context(authority))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_older_versions_are_never_served(authority: Authority, version: ssl.TLSVersion) -> None:
    client = client_context(authority)
    client.set_ciphers("ALL:@SECLEVEL=0")
    client.minimum_version = client.maximum_version = version
    with pytest.raises(ssl.SSLError):
        handshake(make_context(settings_for(authority.server())), client)


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        (("TLSv1.2", "TLSv1.1"), "ssl.enabled.protocols: TLSv1.1 is not safe and not served: remove it"),
        (("TLSv1.4",), "ssl.enabled.protocols: 'TLSv1.4' is not a version"),
        ((), "ssl.enabled.protocols names no version"),
    ],
)
def test_other_versions_are_refused(authority: Authority, versions: tuple[str, ...], message: str) -> None:
    with pytest.raises(TlsSettingsError, match=f"^{message}"):
        make_context(settings_for(authority.server(), enabled_protocols=versions))


def test_only_the_suites_that_are_listed_are_negotiated_and_tls_1_3_is_off_without_its_own(
    authority: Authority,
) -> None:
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",)
    context = make_context(settings_for(authority.server(), cipher_suites=suites))
    outcome = handshake(context, client_context_with(authority, "ALL"))
    assert (outcome.version, outcome.suite) == ("TLSv1.2", "ECDHE-ECDSA-AES256-SHA384")


def client_context_with(authority: Authority, ciphers: str) -> ssl.SSLContext:
    client = client_context(authority)
    client.set_ciphers(ciphers)
    return client


def test_suites_of_tls_1_3_alone_turn_the_older_version_off(authority: Authority) -> None:
    context = make_context(settings_for(authority.server(), cipher_suites=TLS_1_3_SUITES))
    assert handshake(context, client_context(authority)).version == "TLSv1.3"
    client = client_context(authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        handshake(context, client)


@pytest.mark.skipif(hasattr(ssl.SSLContext, "set_ciphersuites"), reason="this Python can restrict TLS 1.3")
def test_a_part_of_the_suites_of_tls_1_3_is_refused_with_both_cures(authority: Authority) -> None:
    suites = ("TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    with pytest.raises(TlsSettingsError) as caught:
        make_context(settings_for(authority.server(), cipher_suites=suites))
    assert str(caught.value) == (
        "ssl.cipher.suites: TLS 1.3 cannot be restricted to TLS_AES_256_GCM_SHA384 here; add "
        "TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256, or set ssl.enabled.protocols=TLSv1.2"
    )
    make_context(settings_for(authority.server(), cipher_suites=suites, enabled_protocols=("TLSv1.2",)))
    make_context(settings_for(authority.server(), cipher_suites=(*suites, *TLS_1_3_SUITES)))


def test_suites_without_a_version_or_a_key_for_them_are_refused(authority: Authority) -> None:
    older = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",)
    with pytest.raises(TlsSettingsError, match=r"^ssl.cipher.suites: no suite in it belongs to ssl.enabled.protocols"):
        make_context(settings_for(authority.server("rsa"), cipher_suites=older, enabled_protocols=("TLSv1.3",)))
    with pytest.raises(TlsSettingsError, match=r"^ssl.cipher.suites: none of them works with the key, which is of an"):
        make_context(settings_for(authority.server("ecdsa"), cipher_suites=older))


@pytest.mark.parametrize("older", [(), ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)])
def test_no_suite_that_is_on_is_null_or_anonymous(authority: Authority, older: tuple[str, ...]) -> None:
    context = make_context(settings_for(authority.server(), cipher_suites=older))
    described = [each["description"] for each in context.get_ciphers()]
    assert described
    assert not [line for line in described if "Au=None" in line or "Enc=None" in line]


def test_without_client_authentication_no_certificate_is_asked_for(authority: Authority) -> None:
    context = make_context(settings_for(authority.server()))
    assert handshake(context, client_context(authority, authority.client())).peer is None


@pytest.mark.parametrize("client_auth", [ClientAuth.REQUESTED, ClientAuth.REQUIRED])
def test_a_client_certificate_is_accepted(authority: Authority, client_auth: ClientAuth) -> None:
    issued = authority.client()
    outcome = handshake(make_context(trusting(authority, client_auth)), client_context(authority, issued))
    assert outcome.peer is not None
    assert x509.load_der_x509_certificate(outcome.peer) == issued.certificate


def test_a_client_without_a_certificate_is_served_only_if_none_is_required(authority: Authority) -> None:
    client = client_context(authority)
    assert handshake(make_context(trusting(authority, ClientAuth.REQUESTED)), client).peer is None
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(make_context(trusting(authority, ClientAuth.REQUIRED)), client)


@pytest.mark.parametrize("client_auth", [ClientAuth.REQUESTED, ClientAuth.REQUIRED])
@pytest.mark.parametrize("fault", ["expired", "not yet valid", "of another authority", "of a server"])
def test_an_invalid_client_certificate_is_refused(authority: Authority, client_auth: ClientAuth, fault: str) -> None:
    issued = {
        "expired": lambda: authority.expired(client=True),
        "not yet valid": lambda: authority.issue("alice", client=True, starts=DAY, ends=2 * DAY),
        "of another authority": lambda: Authority("other").client(),
        "of a server": authority.server,
    }[fault]()
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(make_context(trusting(authority, client_auth)), client_context(authority, issued))


def test_a_certificate_in_the_truststore_that_is_no_root_ends_a_chain_as_in_java(authority: Authority) -> None:
    middle = Authority("middle", parent=authority)
    settings = settings_for(
        authority.server(),
        truststore_type="PEM",
        truststore_certificates=middle.pem,
        client_auth=ClientAuth.REQUIRED,
    )
    handshake(make_context(settings), client_context(authority, middle.client()))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(make_context(settings), client_context(authority, authority.client()))


def test_a_key_that_is_too_short_is_refused(authority: Authority) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(common_name("short"))
        .issuer_name(common_name("short"))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now() - DAY)
        .not_valid_after(now() + DAY)
        .sign(key, hashes.SHA256())
    )
    with pytest.raises(TlsSettingsError, match=r"^ssl.keystore: the key is too short"):
        make_context(settings_for(Issued(key, certificate)))


def test_the_key_is_never_in_a_file_that_others_can_open(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    load = ssl.SSLContext.load_cert_chain

    def loading(self: ssl.SSLContext, path: str) -> None:
        seen.append((stat.S_IMODE(Path(path).stat().st_mode) & 0o077, Path(path).stat().st_nlink))
        load(self, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", loading)
    monkeypatch.setattr(context_module.tempfile, "tempdir", str(tmp_path))
    settings = settings_for(authority.server())
    make_context(settings)
    assert seen[-1][1] == 0  # it has no name
    monkeypatch.delattr(os, "memfd_create")
    make_context(settings)
    assert seen[-1] == (0, 1)
    assert list(tmp_path.iterdir()) == []
