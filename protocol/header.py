"""Requests and responses as they travel: header and body of one frame, without the size before it.

| request header | v0 | v1 | v2 |
|---|---|---|---|
| api key i16, api version i16, correlation id i32 | x | x | x |
| client id, nullable string with an i16 length, also in v2 | | x | x |
| tagged fields | | | x |

| response header | v0 | v1 |
|---|---|---|
| correlation id i32 | x | x |
| tagged fields | | x |

Which header goes with a body is not on the wire: flexible versions of an API have request header v2 and response
header v1, others v1 and v0; v0 of the request header belonged to ControlledShutdown v0 alone. ApiVersions is the
exception: its response always has header v0, since a client must be able to read the answer to a version that the
broker does not know (KIP-511).
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
"""Bytes of the longest header that is worth a `RepeatedHeader`: tagged fields could make one as long as a frame."""


class RequestHeader(msgspec.Struct, frozen=True, gc=False):
    """The header of a request, whatever its version. `client_id` is None when it was null or the version has none."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def request_header_version(api_key: int, api_version: int) -> int:
    """The version of the request header for a request. Raises KeyError for an API key that no table has."""
    if api_key == CONTROLLED_SHUTDOWN_KEY:
        return 0 if api_version == 0 else 1
    flexible_since = by_key(api_key).flexible_since
    return 2 if flexible_since is not None and api_version >= flexible_since else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The version of the response header for a response. Raises KeyError for an API key that no table has."""
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
    """The header of a request for who needs no object of it: API key, version, correlation id, client id, and offset.

    The offset is that of the body.
    An unknown API key leaves the header's version open: it is read as v1, enough to name the offender. So is an
    ApiVersions request of a version from the future, whose header has grown by tagged fields at most. Raises
    RemoteProtocolError.
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
    """The header of a request, to know it again: a client changes nothing but the correlation id in its next one.

    ```
    | api key, version | correlation id | client id with its length, tagged fields | body
    | the same bytes   | any            | the same bytes                           ^ offset
    ```

    Headers of the same bytes mean the same. To compare them takes 0.15 µs, to read one 0.5.
    """

    __slots__ = ("_identity", "_start", "_unpack", "api_key", "api_version", "client_id", "offset")

    def __init__(self, frame: Buffer, api_key: int, api_version: int, client_id: str | None, offset: int) -> None:
        """`frame` is what `read_request_header` has read the rest from."""
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.offset = offset
        self._unpack = struct.Struct(f">4si{offset - _REQUEST.size}s").unpack_from
        self._start, _, self._identity = self._unpack(frame, 0)

    def correlation_id_of(self, frame: Buffer) -> int | None:
        """The correlation id of a request that has this header; None if it has another one."""
        if len(frame) < self.offset:
            return None
        start, correlation_id, identity = self._unpack(frame, 0)
        return correlation_id if identity == self._identity and start == self._start else None


_HEADER_VERSIONS: dict[tuple[int, int], int] = {}


def _header_version(api_key: int, api_version: int) -> int:
    """As `request_header_version`, kept in `_HEADER_VERSIONS` for the next time; 1 for an unknown API key."""
    try:
        version = request_header_version(api_key, api_version)
    except KeyError:
        return 1
    if api_key == CONTROLLED_SHUTDOWN_KEY or by_key(api_key).min_version <= api_version <= by_key(api_key).max_version:
        _HEADER_VERSIONS[api_key, api_version] = version  # and nothing that peers make up, which would have no end
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
    """The function that makes a response's header of its correlation id. Raises KeyError for an unknown API key."""
    return (_CORRELATION_ID_AND_TAGS if response_header_version(api_key, api_version) == 1 else _CORRELATION_ID).pack


def response_start_packer(api_key: int, api_version: int) -> Callable[[int, int], bytes]:
    """The function that makes what a framed response begins with: size, then header, of the size and correlation id.

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
