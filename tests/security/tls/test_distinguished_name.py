r"""Names of certificates as Java prints them. The expected texts of the table are what Java 17 printed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from odradek.broker.security.tls.distinguished_name import MOST_CHARACTERS, name_of, subject_name
from tests.effort import cases as tried
from tests.peers.certificates import Authority
from tests.peers.java_machine import JavaMachine
from tests.security.tls.names import BMP, INTEGER, KEYWORDS, T61, TIME, UNIVERSAL, UTF8, name, random_name, text

GOLDEN: list[tuple[bytes, str]] = [
    (name(), ""),
    (name(text("C", "DE"), text("O", "Org"), text("OU", "Unit"), text("CN", "alice")), "CN=alice,OU=Unit,O=Org,C=DE"),
    (
        name(text("L", "Town"), text("ST", "Land"), text("STREET", "Way 1"), text("DC", "org"), text("UID", "u1")),
        "UID=u1,DC=org,STREET=Way 1,ST=Land,L=Town",
    ),
    (name(text("CN", 'a,b=c+d<e>f#g;h"i\\j')), 'CN=a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j'),
    (name(text("CN", "  two and one ")), "CN=\\ \\ two and one\\ "),
    (name(text("CN", "   ")), "CN=\\ \\ \\ "),
    (name(text("CN", "\rx\r")), "CN=\\\rx\\\r"),
    (name(text("CN", "a\0b")), "CN=a\\00b"),
    (name(text("CN", "")), "CN="),
    (name(text("CN", "Zoë 漢字\n")), "CN=Zoë 漢字\n"),
    (name(text("1.2.840.113549.1.9.1", "a@b", 0x16)), "1.2.840.113549.1.9.1=#1603614062"),
    (name(text("2.5.4.5", "12", 0x13), text("2.5.4.42", "Al")), "2.5.4.42=#0c02416c,2.5.4.5=#13023132"),
    (name(text("2.999.1", "x")), "2.999.1=#0c0178"),
    (
        name([*text("OU", "one"), *text("CN", "two")], [*text("CN", "three"), *text("UID", "four")]),
        "CN=three+UID=four,OU=one+CN=two",
    ),
    (name([(KEYWORDS["CN"], INTEGER, b"\x05")]), "CN=#020105"),
    (name([(KEYWORDS["CN"], TIME, b"200101000000Z")]), "CN=#170d3230303130313030303030305a"),
    (name([(KEYWORDS["CN"], UNIVERSAL, "ab".encode("utf-32-be"))]), "CN=#1c080000006100000062"),
    (name([(KEYWORDS["CN"], BMP, "ab".encode("utf-16-be"))]), "CN=\\00a\\00b"),
    (name([(KEYWORDS["CN"], T61, b"Zo\xeb")]), "CN=Zo\ufffd"),
]


@pytest.mark.parametrize(("encoded", "expected"), GOLDEN, ids=[expected[:30] for _, expected in GOLDEN])
def test_names_are_written_as_java_does(encoded: bytes, expected: str) -> None:
    assert name_of(encoded) == expected


@pytest.mark.process
@pytest.mark.java
def test_java_prints_the_table_and_any_other_name_likewise() -> None:
    source = random.Random(20)
    encoded = [of for of, _ in GOLDEN] + [random_name(source) for _ in range(tried(1000))]
    with JavaMachine() as machine:
        printed = [str(machine.new("javax.security.auth.x500.X500Principal", each).getName()) for each in encoded]
    assert printed[: len(GOLDEN)] == [expected for _, expected in GOLDEN]
    assert [(each.hex(), name_of(each)) for each in encoded] == [
        (each.hex(), java) for each, java in zip(encoded, printed, strict=True)
    ]


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
def test_the_subject_of_a_certificate_is_named(kind: Any) -> None:
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Org"), x509.NameAttribute(NameOID.COMMON_NAME, "alice, b")]
    )
    issued = Authority("CN=issuer").client(subject, kind)
    assert subject_name(issued.certificate.public_bytes(serialization.Encoding.DER)) == "CN=alice\\, b,O=Org"


def test_malformed_der_is_refused_and_never_misread() -> None:
    whole = Authority().client("alice").certificate.public_bytes(serialization.Encoding.DER)
    assert subject_name(whole) == "CN=alice"
    for end in range(len(whole)):
        with pytest.raises(ValueError, match="DER"):
            subject_name(whole[:end])
    encoded = name(text("CN", "alice"), text("O", "Org"))
    for position in range(len(encoded)):
        for value in range(256):
            damaged = encoded[:position] + bytes([value]) + encoded[position + 1 :]
            try:
                assert isinstance(name_of(damaged), str)
            except ValueError:
                pass


def test_an_oid_that_is_cut_off_and_a_length_of_many_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="object identifier"):
        name_of(name(text("CN", "a")).replace(bytes.fromhex("0603550403"), bytes.fromhex("0603550483")))
    with pytest.raises(ValueError, match="length"):
        name_of(b"\x30\x85\x00\x00\x00\x00\x01\x00")


def test_a_name_has_a_bound() -> None:
    assert len(name_of(name([(KEYWORDS["CN"], UTF8, b"x" * (MOST_CHARACTERS - 3))]))) == MOST_CHARACTERS
    with pytest.raises(ValueError, match="longer than 4096 characters"):
        name_of(name([(KEYWORDS["CN"], UTF8, b"x" * (MOST_CHARACTERS - 2))]))
