"""Names of subjects, in DER: made by hand, because libraries refuse what a certificate may nevertheless have."""

from __future__ import annotations

import random

Attribute = tuple[str, int, bytes]
"""An OID, the tag of the value, and its content."""

UTF8, PRINTABLE, T61, IA5, GENERAL, UNIVERSAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E
NUMERIC, VISIBLE, INTEGER, OCTETS, TIME = 0x12, 0x1A, 0x02, 0x04, 0x17
KEYWORDS = {
    "CN": "2.5.4.3",
    "C": "2.5.4.6",
    "L": "2.5.4.7",
    "ST": "2.5.4.8",
    "STREET": "2.5.4.9",
    "O": "2.5.4.10",
    "OU": "2.5.4.11",
    "DC": "0.9.2342.19200300.100.1.25",
    "UID": "0.9.2342.19200300.100.1.1",
}
# Surname, serial number, title, given name, distinguished name qualifier, e-mail address, and two of nobody.
OTHERS = [
    "2.5.4.4",
    "2.5.4.5",
    "2.5.4.12",
    "2.5.4.42",
    "2.5.4.46",
    "1.2.840.113549.1.9.1",
    "1.3.6.1.4.1.11129",
    "2.999.1",
]
PIECES = [
    *',=+<>#;"\\',
    " ",
    "  ",
    "\r",
    "\n",
    "\t",
    "\0",
    "a",
    "b",
    "CN=",
    "é",
    "漢",
    "\u00a0",
    "\u200b",
    "x y",
    "'",
    "$1",
]


def element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    encoded = b""
    for number in [40 * first + second, *rest]:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(0x80 | number & 0x7F)
        encoded += bytes(reversed(groups))
    return element(0x06, encoded)


def name(*sets: list[Attribute]) -> bytes:
    """A Name of these sets of attributes, in this order."""
    return element(
        0x30,
        b"".join(
            element(0x31, b"".join(element(0x30, oid(of) + element(tag, value)) for of, tag, value in attributes))
            for attributes in sets
        ),
    )


def text(keyword: str, value: str, tag: int = UTF8) -> list[Attribute]:
    """A set with one string."""
    return [(KEYWORDS.get(keyword, keyword), tag, value.encode())]


def random_name(source: random.Random) -> bytes:
    return name(
        *[[_attribute(source) for _ in range(source.choice([1, 1, 1, 2, 3]))] for _ in range(source.randrange(5))]
    )


def _attribute(source: random.Random) -> Attribute:
    tag = source.choice([UTF8, UTF8, UTF8, PRINTABLE, T61, IA5, GENERAL, UNIVERSAL, BMP, NUMERIC, VISIBLE, OCTETS])
    value = "".join(source.choice(PIECES) for _ in range(source.randrange(7)))
    encoding = {BMP: "utf-16-be", UNIVERSAL: "utf-32-be"}.get(tag, source.choice(["utf-8"] * 9 + ["latin-1"]))
    return source.choice([*KEYWORDS.values(), *OTHERS]), tag, value.encode(encoding, "replace")
