r"""The subject of a certificate as Java names it: `X500Principal.getName()`, of which Kafka makes principals.

```
Certificate ::= SEQUENCE { tbs SEQUENCE { [0] version OPTIONAL, serial, signature, issuer, validity, subject, … }, … }
subject     ::= SEQUENCE OF SET OF SEQUENCE { type OBJECT IDENTIFIER, value ANY }
```

The name is RFC 2253 as Java's `sun.security.x509.AVA` writes it:

- the sets in reverse order, joined by a comma without a space; in a set, the attributes in their order, joined by `+`;
- CN, C, L, ST, O, OU, STREET, DC and UID by keyword; any other type as its OID, with `#` and the hexadecimal DER of the
  value;
- so also a value that is no string (or a string type that Java does not know);
- a backslash before each of `, = + < > # ; " \`, and before each space at the start and the end; `\00` for a NUL.

Everything else stays as it is, although RFC 4514 would escape more or less: access rules compare the whole text.

The certificate has been checked by OpenSSL before, so malformed DER means a bug or an attack: ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MOST_CHARACTERS = 4096
"""A longer name is refused: it is part of every decision about access, and of log lines."""

_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString (whose two-byte units Java reads as UTF-8)
_STRINGS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"


class _Element(NamedTuple):
    """One element of DER: its tag, the whole of it, and its content."""

    tag: int
    whole: bytes
    content: bytes


def subject_name(certificate: bytes) -> str:
    """Return the name of the subject of a certificate in DER. Raises ValueError."""
    tbs = _elements(_only(certificate, _SEQUENCE))
    fields = list(_elements(_expect(next(tbs, None), _SEQUENCE)))
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    if len(fields) < 5:
        raise ValueError("a certificate has no subject")
    return name_of(fields[4].whole)


def name_of(name: bytes) -> str:
    """Return the text of a `Name` in DER. Raises ValueError."""
    sets = [_set_text(_expect(each, _SET)) for each in _elements(_only(name, _SEQUENCE))]
    text = ",".join(reversed(sets))
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the subject of a certificate is longer than {MOST_CHARACTERS} characters")
    return text


def _set_text(attributes: bytes) -> str:
    return "+".join([_attribute_text(_expect(each, _SEQUENCE)) for each in _elements(attributes)])


def _attribute_text(attribute: bytes) -> str:
    elements = list(_elements(attribute))
    if len(elements) != 2:
        raise ValueError("an attribute of a name has a type and a value")
    oid = _oid_text(_expect(elements[0], _OID))
    value = elements[1]
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or oid}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(_string(value))}"


def _string(value: _Element) -> str:
    return value.content.decode("utf-8", "replace")


def _escaped(text: str) -> str:
    escaped = "".join([f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text])
    start = len(escaped) - len(escaped.lstrip(_BLANKS))
    end = max(len(escaped.rstrip(_BLANKS)), start)
    before, after = ("".join([f"\\{each}" for each in part]) for part in (escaped[:start], escaped[end:]))
    return f"{before}{escaped[start:end]}{after}"


def _oid_text(content: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers or content[-1] & 0x80:
        raise ValueError("an object identifier is cut off")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _only(data: bytes, tag: int) -> bytes:
    """Return the content of the first element of `data`."""
    return _expect(next(_elements(data), None), tag)


def _expect(element: _Element | None, tag: int) -> bytes:
    if element is None or element.tag != tag:
        raise ValueError(f"DER has no element {tag:#x} where one belongs")
    return element.content


def _elements(data: bytes) -> Iterator[_Element]:
    """Yield the elements of DER one after the other. Raises ValueError."""
    position = 0
    while position < len(data):
        start = position
        if len(data) < position + 2:
            raise ValueError("DER is cut off")
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            if not 1 <= count <= 4:
                raise ValueError("a length in DER is not valid")
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        end = position + length
        if end > len(data):
            raise ValueError("DER is cut off")
        yield _Element(tag, data[start:end], data[position:end])
        position = end
