"""The variable-length pieces of the protocol that compiled codecs share, and the text form of uuids.

An unsigned varint holds 7 bits a byte, least significant group first, the top bit set on all but the last byte; at
most five bytes for 32 bits (KIP-482). Compact lengths are unsigned varints of the length plus one, where zero means
null.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from odradek.protocol.errors import RemoteProtocolError

_ONE_BYTE = tuple(bytes((value,)) for value in range(128))
Buffer = bytes | bytearray | memoryview


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint of up to 32 bits."""
    if value < 128:
        return _ONE_BYTE[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def uvarint_rest(buffer: Buffer, offset: int, first: int) -> tuple[int, int]:
    """Go on decoding an unsigned varint after its first byte, 128 or more; `offset` is that of the second byte.

    Returns the value and the offset after it. Raises RemoteProtocolError when it does not end within five bytes or 32
    bits, IndexError when the buffer ends before it does.
    """
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, offset
    raise RemoteProtocolError("an unsigned varint is longer than 32 bits")


def uuid_to_text(uuid: bytes) -> str:
    """Kafka's text form of a uuid: URL-safe base64, 22 characters, no padding (`org.apache.kafka.common.Uuid`)."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_from_text(text: str) -> bytes:
    """Parse Kafka's text form of a uuid into its 16 bytes. Raises ValueError when it is none."""
    uuid = urlsafe_b64decode(text + "==")
    if len(uuid) != 16:
        raise ValueError(f"not a uuid of 16 bytes: {text!r}")
    return uuid
