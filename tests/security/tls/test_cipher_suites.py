"""Java's names of cipher suites in the words of OpenSSL, compared with OpenSSL's own list of standard names."""

from __future__ import annotations

import ssl
import subprocess

import pytest

from odradek.broker.security.tls.cipher_suites import TLS_1_2_SUITES, TLS_1_3_SUITES, choose
from odradek.broker.security.tls.settings import TlsSettingsError
from tests.peers.availability import program


def supported() -> frozenset[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:COMPLEMENTOFDEFAULT")
    return frozenset(each["name"] for each in context.get_ciphers())


@pytest.mark.process
def test_names_are_those_that_openssl_gives_as_standard_names() -> None:
    printed = subprocess.run(
        [program("openssl", "openssl"), "ciphers", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    standard = {fields[0]: fields[2] for line in printed.splitlines() if (fields := line.split())}
    ours = TLS_1_2_SUITES | {name: name for name in TLS_1_3_SUITES}
    common = ours.keys() & standard.keys()
    assert len(common) >= 20
    assert {name: ours[name] for name in common} == {name: standard[name] for name in common}
    assert not (ours.keys() - common) & set(supported())


def test_a_list_is_split_by_version_in_its_order() -> None:
    names = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384"]
    chosen = choose([*names, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", names[0]], supported())
    assert chosen.tls_1_2 == ("ECDHE-RSA-AES128-GCM-SHA256", "AES256-GCM-SHA384")
    assert chosen.tls_1_3 == ("TLS_AES_256_GCM_SHA384",)


@pytest.mark.parametrize(
    "name",
    [
        "TLS_RSA_WITH_NULL_SHA256",
        "TLS_ECDHE_RSA_WITH_NULL_SHA",
        "TLS_DH_anon_WITH_AES_256_GCM_SHA384",
        "TLS_ECDH_anon_WITH_AES_128_CBC_SHA",
        "SSL_RSA_EXPORT_WITH_RC4_40_MD5",
        "SSL_RSA_EXPORT_WITH_DES40_CBC_SHA",
        "SSL_RSA_WITH_RC4_128_SHA",
        "SSL_RSA_WITH_3DES_EDE_CBC_SHA",
        "SSL_RSA_WITH_DES_CBC_SHA",
        "TLS_KRB5_WITH_3DES_EDE_CBC_SHA",
    ],
)
def test_suites_that_protect_nothing_are_refused(name: str) -> None:
    with pytest.raises(TlsSettingsError, match=rf"^ssl.cipher.suites: {name}: it protects nothing"):
        choose(["TLS_AES_256_GCM_SHA384", name], supported())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "use TLS_ECDHE_"),
        ("TLS_DHE_DSS_WITH_AES_256_GCM_SHA384", "use TLS_ECDHE_"),
        ("TLS_MADE_UP", "this OpenSSL has no such suite"),
        ("TLS_RSA_WITH_CHACHA20_POLY1305_SHA256", "this OpenSSL has no such suite"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "write it as Java does: TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ],
)
def test_other_suites_are_refused_with_a_hint(name: str, why: str) -> None:
    with pytest.raises(TlsSettingsError, match=rf"^ssl.cipher.suites: {name}: .*{why}"):
        choose([name], supported())


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(TlsSettingsError, match="names no suite"):
        choose(["TLS_EMPTY_RENEGOTIATION_INFO_SCSV"], supported())
