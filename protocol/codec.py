"""Encoding and decoding of messages, by functions that are compiled once for each layout.

`odradek.protocol.code_generation` writes two straight-line Python functions for every layout
(`odradek.protocol.schema.layout`), `encode(message, out, splices)` and `decode(buffer, offset)`. They are compiled at
their first use and kept. One `struct` call handles neighbouring fields of fixed width and the length or count after
them. Nested structures become loops. Long or rare values are left to functions (`codec_parts`). `linecache` has the
source, so that tracebacks and debuggers show it, and `python -m protocol show fetch 12` prints it.

For any input a decoder returns a message or raises RemoteProtocolError. It allocates in proportion to the size of the
input, not to the lengths in it: every length is compared with the bytes that remain before anything is allocated
(CVE-2022-34917). Bytes of a string that are not UTF-8 become U+FFFD, as in Kafka. `string` and `bytes` fields are
copies, `records` are views of the buffer.

An encoder does not copy records that are not bytes-like but have a length (the slice of a segment file). It writes
their length and appends `(position in out, object)` to `splices`; the transport sends the parts in that order.

An element of an array that `may_be_encoded` may be an `EncodedPart`, whose bytes an encoder only copies.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

import msgspec

from odradek.protocol.buffer import Buffer
from odradek.protocol.code_generation.decoder_writer import DecoderInStepsWriter, DecoderWriter
from odradek.protocol.code_generation.encoder_writer import EncoderInStepsWriter, EncoderWriter
from odradek.protocol.code_generation.error_counts import ErrorCountWriter
from odradek.protocol.code_generation.source_writer import compiled
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.schema import EncodedPart, Layout, Message, Structure, fields, layout, spec
from odradek.protocol.unfit_value import unfit_value

M = TypeVar("M", bound=Message)
Splices = list[tuple[int, Any]]
Encoder = Callable[[Any, bytearray, "Splices | None"], None]
Decoder = Callable[[memoryview, int], tuple[Any, int]]
EncoderInSteps = Callable[[Any, bytearray, "Splices"], Generator[None, None, None]]
DecoderInSteps = Callable[[memoryview, int], Generator[None, None, tuple[Any, int]]]


DECODING_ERRORS = (RemoteProtocolError, struct.error, IndexError)
"""The exceptions of a `decoder`: each means that the peer sent malformed bytes."""
ENCODING_ERRORS = (LocalProtocolError, struct.error, TypeError, AttributeError, UnicodeEncodeError)
"""The exceptions of an `encoder`: each means that a value does not fit the version."""


def encode(message: Message, version: int) -> bytearray:
    """Encode the body of a message. Raises LocalProtocolError if the version or the values do not fit."""
    out = bytearray()
    encode_into(message, version, out)
    return out


def encode_into(message: Message, version: int, out: bytearray, splices: Splices | None = None) -> None:
    """Append the body of a message to `out`; without `splices` all records must be bytes-like.

    Raises LocalProtocolError; then the content of `out` is undefined.
    """
    encode_body = _ENCODERS.get((message.__class__, version)) or encoder(message.__class__, version)
    try:
        encode_body(message, out, splices)
    except LocalProtocolError:
        raise
    except ENCODING_ERRORS as error:
        name = type(message).__name__
        value = unfit_value(message, layout(type(message), version)) or f"one of its values: {error}"
        raise LocalProtocolError(f"{name} v{version} cannot carry {value}") from error


def decode(cls: type[M], version: int, buffer: Buffer, offset: int = 0) -> M:
    """Decode the body of a message at `offset`; bytes after it are ignored. Raises RemoteProtocolError."""
    return decode_from(cls, version, buffer, offset)[0]


def decode_from(cls: type[M], version: int, buffer: Buffer, offset: int = 0) -> tuple[M, int]:
    """Decode the body of a message at `offset` and return it with the offset after it. Raises RemoteProtocolError."""
    decode_body = _DECODERS.get((cls, version)) or decoder(cls, version)
    try:
        decoded: tuple[M, int] = decode_body(buffer if buffer.__class__ is memoryview else memoryview(buffer), offset)
    except RemoteProtocolError:
        raise
    except DECODING_ERRORS as error:
        raise RemoteProtocolError(f"{cls.__name__} v{version} is malformed: {error}") from error
    return decoded


def encoder(cls: type[Message], version: int) -> Encoder:
    """Return the compiled function that `encode_into` calls. It raises ENCODING_ERRORS."""
    encode_body = cast("Encoder", compiled(EncoderWriter, _checked_layout(cls, version)))
    _ENCODERS[cls, version] = encode_body
    return encode_body


def decoder(cls: type[Message], version: int) -> Decoder:
    """Return the compiled function that `decode_from` calls. It raises DECODING_ERRORS."""
    decode_body = cast("Decoder", compiled(DecoderWriter, _checked_layout(cls, version)))
    _DECODERS[cls, version] = decode_body
    return decode_body


def encoder_in_steps(cls: type[Message], version: int) -> EncoderInSteps:
    """Return an encoder for large messages: a generator that yields after every few KiB of array elements."""
    return cast("EncoderInSteps", compiled(EncoderInStepsWriter, _checked_layout(cls, version)))


def decoder_in_steps(cls: type[Message], version: int) -> DecoderInSteps:
    """Return a decoder for large messages: a generator that yields after every few KiB of array elements.

    It returns what a `decoder` does, and raises RemoteProtocolError for more than `codec_parts.MAX_ROWS` elements in
    all arrays together.
    """
    return cast("DecoderInSteps", compiled(DecoderInStepsWriter, _checked_layout(cls, version)))


class PartEncoder:
    """Encodes structures of one class as elements of an array that `may_be_encoded`, for one version of a message."""

    def __init__(self, cls: type[Structure], message: type[Message], version: int) -> None:
        self._layout = of = layout(cls, version, spec(message).is_flexible(version))
        self._encode = compiled(EncoderInStepsWriter, of)
        self._count_errors = compiled(ErrorCountWriter, of)

    def encode_in_steps(self, part: Structure) -> Generator[None, None, EncodedPart]:
        """Return the encoded part; yield after every few KiB. Raises ENCODING_ERRORS."""
        out = bytearray()
        yield from self._encode(part, out, None)
        errors: defaultdict[int, int] = defaultdict(int)
        self._count_errors(part, errors)
        return EncodedPart(bytes(out), tuple(errors.items()), self._layout)


def decode_part(part: EncodedPart) -> Structure:
    """Return the structure of which a part was made, with the defaults of fields that its version does not have."""
    structure: Structure = compiled(DecoderWriter, part.layout)(memoryview(part.content), 0)[0]
    return structure


def with_decoded_parts(message: M) -> M:
    """Return a message without `EncodedPart`s: these are replaced by their structures."""
    arrays = {field.name: getattr(message, field.name) for field in fields(type(message)) if field.may_be_encoded}
    decoded = {
        name: [decode_part(each) if isinstance(each, EncodedPart) else each for each in array]
        for name, array in arrays.items()
    }
    return msgspec.structs.replace(message, **decoded) if decoded else message


def encoder_source(cls: type[Message], version: int) -> str:
    """Return the source of the function that encodes this message."""
    return EncoderWriter(_checked_layout(cls, version)).source()


def decoder_source(cls: type[Message], version: int) -> str:
    """Return the source of the function that decodes this message."""
    return DecoderWriter(_checked_layout(cls, version)).source()


_ENCODERS: dict[tuple[type[Message], int], Encoder] = {}
_DECODERS: dict[tuple[type[Message], int], Decoder] = {}


def _checked_layout(cls: type[Message], version: int) -> Layout:
    declared = spec(cls)
    if not declared.first_version <= version <= declared.last_version:
        raise LocalProtocolError(
            f"{cls.__name__} has versions {declared.first_version} to {declared.last_version}, not {version}"
        )
    return layout(cls, version)
