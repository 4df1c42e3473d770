"""The headers of a record (KIP-82): pairs of key and value, in order; keys may repeat.

```
count          varint
  key length   varint   never negative
  key          bytes    UTF-8
  value length varint   negative: null
  value        bytes
```
Keys are text here. Differs from Kafka: bytes of a key that are not UTF-8 become lone surrogates, not U+FFFD, because
then they can be written back unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.varint import SHORT_VARINTS, encode_varint, read_varint

Header = tuple[str, bytes | None]

_SHORT: Final = len(SHORT_VARINTS)
_NULL: Final = encode_varint(-1)
_SHORT_NAME: Final = 128
_MOST_NAMES: Final = 512


def encode_headers(headers: Sequence[Header]) -> bytes:
    """Encode the count and the headers. Raises LocalProtocolError for a key that has no UTF-8 form."""
    count = len(headers)
    out = [SHORT_VARINTS[count] if count < _SHORT else encode_varint(count)]
    for name, value in headers:
        out.append(_short_name(name) if len(name) < _SHORT_NAME else _encode_name(name))
        if value is None:
            out.append(_NULL)
        else:
            length = len(value)
            out += (SHORT_VARINTS[length] if length < _SHORT else encode_varint(length), value)
    return b"".join(out)


def _encode_name(name: str) -> bytes:
    """Encode the key of a header with its length."""
    try:
        key = name.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"the key of a record header is not text: {error}") from None
    return encode_varint(len(key)) + key


def _decode_key(key: bytes) -> str:
    """Decode the key of a header."""
    return key.decode(errors="surrogateescape")


# A program uses few keys, many times. Long ones are not cached.
_short_name = lru_cache(maxsize=_MOST_NAMES)(_encode_name)
_known_key = lru_cache(maxsize=_MOST_NAMES)(_decode_key)


def decode_headers(data: bytes, at: int, end: int) -> tuple[list[Header], int]:
    """Decode the headers at `at` of a record that ends at `end`; return them and the position after them.

    Raises RemoteProtocolError if they are malformed, IndexError if `data` ends inside them.
    """
    count, at = _read_count(data, at, end)
    headers: list[Header] = []
    for _ in range(count):
        byte = data[at]
        if byte < 128:
            at += 1
            length = -1 if byte & 1 else byte >> 1
        else:
            length, at = read_varint(data, at)
        if not 0 <= length <= end - at:
            raise RemoteProtocolError(
                f"the key of a record header takes {pluralize(length, 'byte')} where {end - at} remain"
            )
        start = at
        at += length
        key = data[start:at]
        name = _known_key(key) if length < _SHORT_NAME else _decode_key(key)
        byte = data[at]
        if byte < 128:
            at += 1
            length = -1 if byte & 1 else byte >> 1
        else:
            length, at = read_varint(data, at)
        if length < 0:
            headers.append((name, None))
            continue
        if length > end - at:
            raise RemoteProtocolError(
                f"the value of a record header takes {pluralize(length, 'byte')} where {end - at} remain"
            )
        start = at
        at += length
        headers.append((name, data[start:at]))
    return headers, at


def skip_headers(data: bytes, at: int, end: int) -> int:
    """Return the position after the headers at `at`, without decoding them. Raises as `decode_headers`."""
    count, at = _read_count(data, at, end)
    for _ in range(count):
        length, at = read_varint(data, at)
        if not 0 <= length <= end - at:
            raise RemoteProtocolError(
                f"the key of a record header takes {pluralize(length, 'byte')} where {end - at} remain"
            )
        length, at = read_varint(data, at + length)
        if length > end - at:
            raise RemoteProtocolError(
                f"the value of a record header takes {pluralize(length, 'byte')} where {end - at} remain"
            )
        at += max(length, 0)
    return at


def _read_count(data: bytes, at: int, end: int) -> tuple[int, int]:
    count = data[at]
    if count < 128 and not count & 1:
        count >>= 1
        at += 1
    else:
        count, at = read_varint(data, at)
    if not 0 <= count <= end - at:
        raise RemoteProtocolError(f"{pluralize(count, 'record header')} in {pluralize(end - at, 'byte')}")
    return count, at
