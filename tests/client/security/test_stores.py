"""Key stores and trust stores: files that cryptography has written, in every form that Kafka accepts."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from odradek.client.errors import ConfigurationError
from odradek.client.security.settings import SecuritySettings
from odradek.client.security.stores import key_material, trusted_certificates
from tests.peers.certificates import Authority, Issued

AUTHORITY = Authority()
CLIENT = AUTHORITY.client("client")


def tls(**settings: Any) -> SecuritySettings:
    return SecuritySettings(
        security_protocol="SSL", **{name: str(value) for name, value in settings.items() if value is not None}
    )


def assert_material(settings: SecuritySettings, issued: Issued = CLIENT) -> None:
    found = key_material(settings)
    assert found is not None
    key = load_pem_private_key(found.key, found.password.encode())
    assert key.public_key() == issued.key.public_key()
    assert "".join(found.chain.split()) == "".join(issued.chain_pem.split())
    assert found.password not in repr(found)
    with pytest.raises(TypeError):
        load_pem_private_key(found.key, None)  # it is encrypted


@pytest.mark.parametrize("password", [None, "pa55"])
@pytest.mark.parametrize("kind", [None, "PEM", "pem"])
def test_a_key_and_its_certificates_in_a_pem_file(tmp_path: Path, password: str | None, kind: str | None) -> None:
    path = CLIENT.write_pem(tmp_path / "client.pem", password)
    assert_material(tls(ssl_keystore_location=path, ssl_key_password=password, ssl_keystore_type=kind))


def test_a_key_and_its_certificates_in_a_pkcs12_file(tmp_path: Path) -> None:
    path = CLIENT.write_pkcs12(tmp_path / "client.p12", "pa55")
    assert_material(tls(ssl_keystore_location=path, ssl_keystore_password="pa55"))
    assert_material(tls(ssl_keystore_location=path, ssl_keystore_password="pa55", ssl_keystore_type="PKCS12"))


@pytest.mark.parametrize("separator", ["\n", " ", ""])
def test_pem_in_properties_needs_no_lines(separator: str) -> None:
    """Kafka's own parser reads a block on one line, as a `.properties` file without `\\n` has it."""
    key, chain = (text.replace("\n", separator) for text in (CLIENT.key_pem(), CLIENT.chain_pem))
    assert_material(tls(ssl_keystore_key=key, ssl_keystore_certificate_chain=chain))
    found = trusted_certificates(tls(ssl_truststore_certificates=AUTHORITY.pem.replace("\n", separator)))
    assert found is not None
    assert ssl.PEM_cert_to_DER_cert(found) == ssl.PEM_cert_to_DER_cert(AUTHORITY.pem)


def test_text_around_certificates_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(f"Aussteller: Prüfstelle\n{AUTHORITY.pem}\n# another\n{AUTHORITY.pem}")
    assert trusted_certificates(tls(ssl_truststore_location=path)) == AUTHORITY.pem * 2


def test_a_trust_store_in_a_pkcs12_file(tmp_path: Path) -> None:
    path = AUTHORITY.write_pkcs12(tmp_path / "ca.p12", "pa55")
    found = trusted_certificates(tls(ssl_truststore_location=path, ssl_truststore_password="pa55"))
    assert found == AUTHORITY.pem


def test_without_stores_there_is_no_key_and_this_machine_decides_whom_to_trust() -> None:
    assert key_material(tls()) is None
    assert trusted_certificates(tls()) is None


def test_what_cannot_be_used_is_refused_with_the_cure(tmp_path: Path) -> None:
    written = {
        "empty": tmp_path / "empty",
        "jks": tmp_path / "store.jks",
        "p12": CLIENT.write_pkcs12(tmp_path / "client.p12", "pa55"),
        "pem": CLIENT.write_pem(tmp_path / "client.pem", "pa55"),
        "ca": tmp_path / "ca.pem",
    }
    written["empty"].write_bytes(b"")
    written["jks"].write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    written["ca"].write_text(AUTHORITY.pem)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ssl_keystore_location": tmp_path / "none"}, "cannot be read (No such file or directory)"),
        ({"ssl_keystore_location": written["jks"]}, f"-destkeystore {tmp_path}/store.p12 -deststoretype PKCS12"),
        ({"ssl_keystore_location": written["empty"]}, "ssl_keystore_password is not set"),
        ({"ssl_keystore_location": written["p12"], "ssl_keystore_password": "wr0ng"}, "does not open it"),
        ({"ssl_keystore_location": written["p12"], "ssl_keystore_type": "PEM"}, "is no PEM file"),
        ({"ssl_keystore_location": written["pem"], "ssl_keystore_type": "PKCS12"}, "is no PKCS12 file"),
        ({"ssl_keystore_location": written["pem"]}, "is encrypted, and ssl_key_password is not set"),
        ({"ssl_keystore_location": written["pem"], "ssl_key_password": "wr0ng"}, "cannot be read. Check ssl_key_passw"),
        ({"ssl_keystore_location": written["ca"]}, "has 0 private keys"),
        (
            {"ssl_keystore_key": CLIENT.key_pem(), "ssl_keystore_certificate_chain": "x"},
            "ssl_keystore_certificate_chain has no certificate",
        ),
    ]
    for settings, words in cases:
        with pytest.raises(ConfigurationError, match=re.escape(words)) as raised:
            key_material(tls(**settings))
        assert "wr0ng" not in str(raised.value)
    with pytest.raises(ConfigurationError, match=r"ssl_truststore_location .*empty cannot be read|PKCS12"):
        trusted_certificates(tls(ssl_truststore_location=written["empty"]))
    with pytest.raises(ConfigurationError, match="ssl_truststore_certificates has no certificate"):
        trusted_certificates(tls(ssl_truststore_certificates="none"))


@pytest.mark.process
def test_a_store_that_keytool_has_written_is_read(tmp_path: Path) -> None:
    import shutil
    import subprocess

    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("no keytool on this machine")
    path = tmp_path / "java.p12"
    store = ["-alias", "a", "-keystore", str(path), "-storepass", "pa55word"]
    made = [keytool, "-genkeypair", "-keyalg", "EC", "-dname", "CN=java", "-storetype", "PKCS12", *store]
    subprocess.run(made, check=True, capture_output=True)
    found = key_material(tls(ssl_keystore_location=path, ssl_keystore_password="pa55word"))
    assert found is not None
    exported = subprocess.run(
        [keytool, "-exportcert", "-rfc", *store], check=True, capture_output=True, text=True
    ).stdout
    assert ssl.PEM_cert_to_DER_cert(found.chain) == ssl.PEM_cert_to_DER_cert(exported)
