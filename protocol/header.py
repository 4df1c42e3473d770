"""Requests and responses: the header and the body of one frame, without the size before it.

| request header | v0 | v1 | v2 |
|---|---|---|---|
| api key i16, api version i16, correlation id i32 | x | x | x |
| client id, nullable string with an i16 length, also in v2 | | x | x |
| tagged fields | | | x |

| response header | v0 | v1 |
|---|---|---|
| correlation id i32 | x | x |
| tagged fields | | x |

The bytes do not contain the version of the header. Flexible versions of an API have request header v2 and response
header v1, others v1 and v0. Only ControlledShutdown v0 had request header v0. The response to ApiVersions always has
header v0, because a client must be able to read the response to a version that the broker does not support (KIP-511).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from odradek.protocol import codec
from odradek.protocol.api import by_key
from odradek.protocol.buffer import Buffer
from odradek.protocol.code_generation.codec_parts import MAX_TAGGED_FIELDS, too_many_tagged_fields
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.schema import Message, spec
from odradek.protocol.uvarint import uvarint_rest

API_VERSIONS_KEY: Final = 18
CONTROLLED_SHUTDOWN_KEY: Final = 7

_REQUEST: Final = struct.Struct(">hhi")
_REQUEST_WITH_CLIENT_ID: Final = struct.Struct(">hhih")
_CORRELATION_ID: Final = struct.Struct(">i")
_CORRELATION_ID_AND_TAGS: Final = struct.Struct(">ix")  # no tagged fields
_FRAMED_CORRELATION_ID: Final = struct.Struct(">ii")
_FRAMED_CORRELATION_ID_AND_TAGS: Final = struct.Struct(">iix")
_LENGTH: Final = struct.Struct(">h")
LONGEST_REPEATED_HEADER: Final = 512
"""Bytes of the longest header that a `RepeatedHeader` is kept for: with tagged fields one could be as long as a frame.
"""


class RequestHeader(msgspec.Struct, frozen=True, gc=False):
    """The header of a request in any version. `client_id` is None if it was null or the version has none."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def request_header_version(api_key: int, api_version: int) -> int:
    """Return the version of the request header for a request. Raises KeyError for an unknown API key."""
    if api_key == CONTROLLED_SHUTDOWN_KEY:
        return 0 if api_version == 0 else 1
    flexible_since = by_key(api_key).flexible_since
    return 2 if flexible_since is not None and api_version >= flexible_since else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Return the version of the response header for a response. Raises KeyError for an unknown API key."""
    if api_key == API_VERSIONS_KEY:
        return 0
    return 1 if request_header_version(api_key, api_version) == 2 else 0


def encode_request_header(header: RequestHeader, version: int) -> bytearray:
    """Encode a request header of the given header version (0 to 2). Raises LocalProtocolError."""
    try:
        out = bytearray(_REQUEST.pack(header.api_key, header.api_version, header.correlation_id))
        if version >= 1:
            if header.client_id is None:
                out += _LENGTH.pack(-1)
            else:
                client_id = header.client_id.encode()
                out += _LENGTH.pack(len(client_id)) + client_id
    except (struct.error, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"a request header cannot carry {header}: {error}") from error
    if version >= 2:
        out.append(0)
    return out


def encode_request(header: RequestHeader, message: Message) -> bytearray:
    """Encode a whole request. Raises LocalProtocolError."""
    flexible = spec(type(message)).is_flexible(header.api_version)
    out = encode_request_header(header, 2 if flexible else 1)
    codec.encode_into(message, header.api_version, out)
    return out


def decode_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """Decode the header of a request and return it with the offset of the body. Raises as `read_request_header`."""
    api_key, api_version, correlation_id, client_id, offset = read_request_header(buffer)
    return RequestHeader(api_key, api_version, correlation_id, client_id), offset


def read_request_header(buffer: Buffer) -> tuple[int, int, int, str | None, int]:
    """Decode the header of a request; return API key, version, correlation id, client id and the offset of the body.

    The header of an unknown API key is read as v1, which is enough to report the client. So is that of an ApiVersions
    request of an unknown version: newer headers can only have tagged fields more. Raises RemoteProtocolError.
    """
    try:
        if len(buffer) == _REQUEST.size:
            api_key, api_version, correlation_id = _REQUEST.unpack(buffer)
            if _header_version(api_key, api_version) == 0:
                return api_key, api_version, correlation_id, None, _REQUEST.size
        api_key, api_version, correlation_id, length = _REQUEST_WITH_CLIENT_ID.unpack_from(buffer, 0)
        version = _HEADER_VERSIONS.get((api_key, api_version))
        if version is None:
            version = _header_version(api_key, api_version)
        if version == 0:
            return api_key, api_version, correlation_id, None, _REQUEST.size
        offset = _REQUEST_WITH_CLIENT_ID.size
        client_id = None
        if length >= 0:
            if length > len(buffer) - offset:
                remaining = pluralize(len(buffer) - offset, "byte remains", "bytes remain")
                raise RemoteProtocolError(f"client id claims length {length} where {remaining}")
            client_id = str(buffer[offset : offset + length], "utf-8", "replace")
            offset += length
        elif length < -1:
            raise RemoteProtocolError(f"client id has length {length}")
        if version == 2:
            offset = offset + 1 if buffer[offset] == 0 else _skip_tagged_fields(buffer, offset)
        return api_key, api_version, correlation_id, client_id, offset
    except (struct.error, IndexError) as error:
        raise RemoteProtocolError(f"the request header is malformed: {error}") from error


class RepeatedHeader:
    """The header of a request, to recognize it in later ones: clients change only the correlation id.

    ```
    | api key, version | correlation id | client id with its length, tagged fields | body
    | the same bytes   | any            | the same bytes                           ^ offset
    ```

    A comparison takes 0.15 µs, decoding a header 0.5 µs.
    """

    __slots__ = ("_identity", "_start", "_unpack", "api_key", "api_version", "client_id", "offset")

    def __init__(self, frame: Buffer, api_key: int, api_version: int, client_id: str | None, offset: int) -> None:
        """`frame` is the one that `read_request_header` decoded the other arguments from."""
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.offset = offset
        self._unpack = struct.Struct(f">4si{offset - _REQUEST.size}s").unpack_from
        self._start, _, self._identity = self._unpack(frame, 0)

    def correlation_id_of(self, frame: Buffer) -> int | None:
        """Return the correlation id of a request with this header; None if it has another one."""
        if len(frame) < self.offset:
            return None
        start, correlation_id, identity = self._unpack(frame, 0)
        return correlation_id if identity == self._identity and start == self._start else None


_HEADER_VERSIONS: dict[tuple[int, int], int] = {}


def _header_version(api_key: int, api_version: int) -> int:
    """Return `request_header_version`, and cache it in `_HEADER_VERSIONS`; 1 for an unknown API key."""
    try:
        version = request_header_version(api_key, api_version)
    except KeyError:
        return 1
    if api_key == CONTROLLED_SHUTDOWN_KEY or by_key(api_key).min_version <= api_version <= by_key(api_key).max_version:
        _HEADER_VERSIONS[api_key, api_version] = version  # never for versions that peers invent
    return version


def encode_response(
    api_key: int,
    api_version: int,
    correlation_id: int,
    message: Message,
    splices: codec.Splices | None = None,
) -> bytearray:
    """Encode a whole response; see `odradek.protocol.codec` for `splices`. Raises LocalProtocolError."""
    out = bytearray(response_header_packer(api_key, api_version)(correlation_id))
    codec.encode_into(message, api_version, out, splices)
    return out


def response_header_packer(api_key: int, api_version: int) -> Callable[[int], bytes]:
    """Return the function that encodes a response header with a correlation id. Raises KeyError for an unknown key."""
    return (_CORRELATION_ID_AND_TAGS if response_header_version(api_key, api_version) == 1 else _CORRELATION_ID).pack


def response_start_packer(api_key: int, api_version: int) -> Callable[[int, int], bytes]:
    """Return the function that encodes the start of a framed response, size and header, from size and correlation id.

    Raises KeyError for an unknown API key.
    """
    has_tags = response_header_version(api_key, api_version) == 1
    return (_FRAMED_CORRELATION_ID_AND_TAGS if has_tags else _FRAMED_CORRELATION_ID).pack


def decode_response(api_key: int, api_version: int, buffer: Buffer) -> tuple[int, Message]:
    """Decode a whole response and return its correlation id and message. Raises RemoteProtocolError."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer, 0)
        offset = _CORRELATION_ID.size
        if response_header_version(api_key, api_version) == 1:
            offset = _skip_tagged_fields(buffer, offset)
    except (struct.error, IndexError) as error:
        raise RemoteProtocolError(f"the response header is malformed: {error}") from error
    return correlation_id, codec.decode(by_key(api_key).response, api_version, buffer, offset)


def _skip_tagged_fields(buffer: Buffer, offset: int) -> int:
    count, offset = _uvarint(buffer, offset)
    if count > MAX_TAGGED_FIELDS:
        raise too_many_tagged_fields(count)
    for _ in range(count):
        _, offset = _uvarint(buffer, offset)
        size, offset = _uvarint(buffer, offset)
        if size > len(buffer) - offset:
            remaining = pluralize(len(buffer) - offset, "byte remains", "bytes remain")
            raise RemoteProtocolError(f"a tagged field claims length {size} where {remaining}")
        offset += size
    return offset


def _uvarint(buffer: Buffer, offset: int) -> tuple[int, int]:
    first = buffer[offset]
    return (first, offset + 1) if first < 128 else uvarint_rest(buffer, offset + 1, first)
