"""Keys and certificates from PEM and PKCS12, and the refusals that name a property and its cure."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa

from odradek.broker.security.tls.settings import ClientAuth, TlsSettings, TlsSettingsError
from odradek.broker.security.tls.stores import read_credentials
from tests.peers.availability import program
from tests.peers.certificates import PASSWORD, Authority, Issued, write_secret


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Issued:
    return authority.server()


def inline(issued: Issued, **others: Any) -> TlsSettings:
    fields = {"keystore_key": issued.key_pem(), "keystore_certificate_chain": issued.chain_pem, **others}
    return TlsSettings(keystore_type="PEM", **fields)


def refusal(settings: TlsSettings) -> str:
    with pytest.raises(TlsSettingsError) as caught:
        read_credentials(settings)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
def test_a_pem_file_has_key_and_chain(authority: Authority, kind: Any, tmp_path: Path) -> None:
    issued = authority.server(kind)
    credentials = read_credentials(TlsSettings(keystore_location=str(issued.write(tmp_path)), keystore_type="PEM"))
    assert credentials.chain == (issued.certificate,)
    assert credentials.key.private_numbers() == issued.key.private_numbers()  # type: ignore[union-attr]


def test_key_and_chain_are_given_as_text(issued: Issued) -> None:
    assert read_credentials(inline(issued)).chain == (issued.certificate,)


def test_text_may_be_in_one_line_with_spaces(issued: Issued) -> None:
    settings = inline(
        issued,
        keystore_key=issued.key_pem().replace("\n", " "),
        keystore_certificate_chain=issued.chain_pem.replace("\n", " "),
    )
    assert read_credentials(settings).chain == (issued.certificate,)


def test_attributes_between_the_blocks_are_skipped(issued: Issued) -> None:
    text = f"Bag Attributes\n    localKeyID: 54 69\nsubject=CN = localhost\n{issued.chain_pem}"
    assert read_credentials(inline(issued, keystore_certificate_chain=text)).chain == (issued.certificate,)


@pytest.mark.parametrize("form", ["pkcs8", "traditional"])
def test_an_encrypted_key_is_decrypted(issued: Issued, form: str) -> None:
    text = issued.key_pem(PASSWORD)
    if form == "traditional":
        text = issued.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        ).decode()
        assert "DEK-Info" in text
    settings = inline(issued, keystore_key=text, key_password=PASSWORD)
    assert read_credentials(settings).chain == (issued.certificate,)


def test_a_chain_in_any_order_is_put_in_order(authority: Authority) -> None:
    middle = Authority("middle", parent=authority)
    low = Authority("low", parent=middle)
    issued = low.server()
    assert [each.subject for each in issued.intermediates] == [low.certificate.subject, middle.certificate.subject]
    reverse = middle.pem + authority.pem + issued.chain_pem + low.pem
    assert read_credentials(inline(issued, keystore_certificate_chain=reverse)).chain == (
        issued.certificate,
        low.certificate,
        middle.certificate,
        authority.certificate,
    )


@pytest.mark.parametrize("store_type", ["PKCS12", "JKS", "pkcs12"])
def test_a_pkcs12_file_is_read_under_the_types_under_which_java_reads_it(
    authority: Authority, tmp_path: Path, store_type: str
) -> None:
    issued = Authority("low", parent=authority).server()
    path = write_secret(tmp_path / "server.p12", issued.pkcs12())
    settings = TlsSettings(keystore_location=str(path), keystore_type=store_type, keystore_password=PASSWORD)
    assert read_credentials(settings).chain == (issued.certificate, *issued.intermediates)


def keytool(*arguments: str) -> None:
    subprocess.run([program("keytool", "default-jre-headless"), *arguments], check=True, capture_output=True)


@pytest.mark.process
@pytest.mark.java
def test_keytools_stores_are_read_and_its_jks_is_refused_with_the_command_that_converts_it(
    authority: Authority, tmp_path: Path
) -> None:
    keystore, truststore, jks = (str(tmp_path / name) for name in ("key.p12", "trust.p12", "old.jks"))
    make = [
        "-genkeypair",
        "-alias",
        "b",
        "-keyalg",
        "EC",
        "-dname",
        "CN=b",
        "-storepass",
        PASSWORD,
        "-keypass",
        PASSWORD,
    ]
    keytool(*make, "-keystore", keystore, "-storetype", "PKCS12")
    ca = str(authority.write(tmp_path))
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", ca, "-keystore", truststore, "-storepass", PASSWORD)
    for path in (keystore, truststore):
        Path(path).chmod(0o600)
    settings = TlsSettings(
        keystore_location=keystore,
        keystore_password=PASSWORD,
        truststore_location=truststore,
        truststore_password=PASSWORD,
        client_auth=ClientAuth.REQUIRED,
    )
    credentials = read_credentials(settings)
    assert credentials.trusted == (authority.certificate,)
    assert credentials.chain[0].subject.rfc4514_string() == "CN=b"

    keytool(*make, "-keystore", jks, "-storetype", "JKS")
    Path(jks).chmod(0o600)
    message = refusal(TlsSettings(keystore_location=jks, keystore_password=PASSWORD))
    assert message.startswith(f"ssl.keystore.location: {jks} is a JKS store")
    command = message.partition("keytool ")[2].partition(",")[0].split()
    keytool(*command, "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    converted = tmp_path / "old.p12"
    converted.chmod(0o600)
    read_credentials(TlsSettings(keystore_location=str(converted), keystore_password=PASSWORD))


@pytest.mark.parametrize("mode", [0o644, 0o602, 0o604])
def test_a_file_with_a_key_that_others_may_read_or_write_is_refused(issued: Issued, tmp_path: Path, mode: int) -> None:
    path = issued.write(tmp_path)
    path.chmod(mode)
    message = refusal(TlsSettings(keystore_location=str(path), keystore_type="PEM"))
    assert message == (
        f"ssl.keystore.location: {path} has a private key and others may read or write it: chmod o= {path}"
    )
    path.chmod(0o640)
    read_credentials(TlsSettings(keystore_location=str(path), keystore_type="PEM"))


def test_a_truststore_may_be_read_but_not_written_by_others(
    authority: Authority, issued: Issued, tmp_path: Path
) -> None:
    path = authority.write(tmp_path)
    settings = inline(issued, truststore_location=str(path), truststore_type="PEM", client_auth=ClientAuth.REQUIRED)
    path.chmod(0o644)
    assert read_credentials(settings).trusted == (authority.certificate,)
    path.chmod(0o646)
    assert refusal(settings).startswith(f"ssl.truststore.location: others may write {path}")


@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_wrong_password_is_named_but_not_shown(issued: Issued, tmp_path: Path, password: str) -> None:
    path = write_secret(tmp_path / "server.p12", issued.pkcs12())
    message = refusal(TlsSettings(keystore_location=str(path), keystore_password=password))
    assert message.startswith(f"ssl.keystore.password: it does not open {path}")
    message = refusal(inline(issued, keystore_key=issued.key_pem(PASSWORD), key_password="wrong"))
    assert message.startswith("ssl.key.password: it does not decrypt the key in ssl.keystore.key")
    assert "wrong" not in message


def test_a_key_of_another_certificate_is_refused(authority: Authority, issued: Issued) -> None:
    other = authority.issue("other", number=77)
    message = refusal(inline(issued, keystore_certificate_chain=other.chain_pem))
    assert message.startswith("ssl.keystore: the private key does not belong to the certificate of CN=other")


def test_a_key_that_tls_does_not_use_is_refused(issued: Issued) -> None:
    key = dsa.generate_private_key(key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    message = refusal(inline(issued, keystore_key=key.decode()))
    assert message.startswith("ssl.keystore.key: the key is neither RSA nor of an elliptic curve")


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({}, "ssl.keystore.location is not set"),
        ({"keystore_type": "PEM", "keystore_key": "k"}, "ssl.keystore.certificate.chain is not set"),
        ({"keystore_type": "PEM", "keystore_certificate_chain": "c"}, "ssl.keystore.key is not set"),
        ({"keystore_key": "k", "keystore_certificate_chain": "c"}, "ssl.keystore.type = JKS: set it to PEM"),
        (
            {"keystore_type": "PEM", "keystore_key": "k", "keystore_certificate_chain": "c", "keystore_location": "f"},
            "ssl.keystore.location and ssl.keystore.key are both set",
        ),
        (
            {"keystore_type": "PEM", "keystore_key": "k", "keystore_certificate_chain": "c", "keystore_password": "p"},
            "ssl.keystore.password is set",
        ),
        ({"keystore_location": "/does/not/exist"}, "ssl.keystore.location: cannot read /does/not/exist: No such file"),
        ({"keystore_location": "/"}, "ssl.keystore.location: / is not a file"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], start: str) -> None:
    assert refusal(TlsSettings(**changes)).startswith(start)


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"client_auth": ClientAuth.REQUIRED}, "ssl.client.auth = required: set ssl.truststore.location or"),
        ({"client_auth": ClientAuth.REQUESTED}, "ssl.client.auth = requested: set ssl.truststore.location or"),
        ({"truststore_password": "p"}, "ssl.truststore.password is set"),
        ({"truststore_certificates": "c"}, "ssl.truststore.type = JKS: set it to PEM"),
        ({"truststore_certificates": "c", "truststore_type": "PEM"}, "ssl.truststore.certificates has no certificate"),
        (
            {"truststore_certificates": "c", "truststore_type": "PEM", "truststore_location": "f"},
            "ssl.truststore.location and ssl.truststore.certificates are both set",
        ),
        ({"key_password": "p"}, "ssl.key.password is set, but the key in ssl.keystore.key is not encrypted"),
    ],
)
def test_contradictions_of_a_truststore_are_refused(issued: Issued, changes: dict[str, Any], start: str) -> None:
    assert refusal(inline(issued, **changes)).startswith(start)


@pytest.mark.parametrize(
    ("content", "store_type", "start"),
    [
        ("-----BEGIN CERTIFICATE-----", "PKCS12", "ssl.keystore.type: {path} is PEM: set ssl.keystore.type=PEM"),
        ("nothing", "PKCS12", "ssl.keystore.location: {path} is neither PEM nor PKCS12"),
        (b"0\x82\x01\x00rest", "PKCS12", "ssl.keystore.password: it does not open {path}"),
        (b"\xce\xce\xce\xce\x00", "JKS", "ssl.keystore.location: {path} is a JCEKS store"),
        ("nothing", "PEM", "ssl.keystore.location has no private key in PEM"),
        (b"\xff\xfe", "PEM", "ssl.keystore.location: {path} is not PEM, although ssl.keystore.type is PEM"),
    ],
)
def test_a_file_of_another_format_is_refused(tmp_path: Path, content: str | bytes, store_type: str, start: str) -> None:
    path = write_secret(tmp_path / "store", content)
    password = None if store_type == "PEM" else PASSWORD
    settings = TlsSettings(keystore_location=str(path), keystore_type=store_type, keystore_password=password)
    assert refusal(settings).startswith(start.format(path=path))


def test_settings_show_no_secret(issued: Issued) -> None:
    settings = inline(issued, key_password=PASSWORD, keystore_password=PASSWORD, truststore_password=PASSWORD)
    shown = f"{settings!r} {settings}"
    assert PASSWORD not in shown
    assert "PRIVATE KEY" not in shown
