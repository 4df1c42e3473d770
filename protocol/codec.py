"""Messages to bytes and back, through functions compiled once per layout.

For every layout (`protocol.schema.layout`) two straight-line Python functions are written, compiled on first use and
kept: `encode(message, out, splices)` and `decode(buffer, offset)`. Neighbouring fields of fixed width become one
`struct` call, nested structures are inlined as loops. Their source stands in `linecache`, so that tracebacks and
debuggers show it, and `python -m protocol show fetch 12` prints it.

What a decoder promises, whatever it is fed: it returns a message or raises RemoteProtocolError, and it allocates in
proportion to the bytes that are there, not to the lengths that they claim: every length is compared with what remains
before anything is allocated (CVE-2022-34917). `string` and `bytes` fields are copies, `records` are views that live
as long as the buffer does.

Records that are not bytes-like but have a length (the slice of a segment file) are not copied by an encoder: it
writes their length, notes `(position in out, object)` in `splices`, and the transport sends the parts in that order.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.primitives import Buffer, uvarint, uvarint_rest
from protocol.schema import ZERO_UUID, Layout, LayoutField, Message, Scalar, layout, spec

M = TypeVar("M", bound=Message)
Splices = list[tuple[int, Any]]
Encoder = Callable[[Any, bytearray, "Splices | None"], None]
Decoder = Callable[[memoryview, int], tuple[Any, int]]


def encode(message: Message, version: int) -> bytearray:
    """Encode the body of a message. Raises LocalProtocolError when the version or the values do not fit."""
    out = bytearray()
    encode_into(message, version, out)
    return out


def encode_into(message: Message, version: int, out: bytearray, splices: Splices | None = None) -> None:
    """Append the body of a message to `out`; without `splices` all records must be bytes-like.

    Raises LocalProtocolError; `out` then ends in garbage and must be thrown away.
    """
    encoder = _ENCODERS.get((message.__class__, version)) or _encoder(message.__class__, version)
    try:
        encoder(message, out, splices)
    except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as error:
        name = type(message).__name__
        raise LocalProtocolError(f"{name} v{version} cannot carry one of its values: {error}") from error


def decode(cls: type[M], version: int, buffer: Buffer, offset: int = 0) -> M:
    """Decode the body of a message at `offset`; bytes after it are not looked at. Raises RemoteProtocolError."""
    return decode_from(cls, version, buffer, offset)[0]


def decode_from(cls: type[M], version: int, buffer: Buffer, offset: int = 0) -> tuple[M, int]:
    """Decode the body of a message at `offset` and return it with the offset after it. Raises RemoteProtocolError."""
    decoder = _DECODERS.get((cls, version)) or _decoder(cls, version)
    try:
        return cast("tuple[M, int]", decoder(memoryview(buffer), offset))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"{cls.__name__} v{version} is malformed: {error}") from error


def encoder_source(cls: type[Message], version: int) -> str:
    """The source of the function that encodes this message."""
    return _EncoderWriter(_checked_layout(cls, version)).source()


def decoder_source(cls: type[Message], version: int) -> str:
    """The source of the function that decodes this message."""
    return _DecoderWriter(_checked_layout(cls, version)).source()


_ENCODERS: dict[tuple[type[Message], int], Encoder] = {}
_DECODERS: dict[tuple[type[Message], int], Decoder] = {}


def _checked_layout(cls: type[Message], version: int) -> Layout:
    declared = spec(cls)
    if not declared.first_version <= version <= declared.last_version:
        raise LocalProtocolError(
            f"{cls.__name__} has versions {declared.first_version} to {declared.last_version}, not {version}"
        )
    return layout(cls, version)


def _encoder(cls: type[Message], version: int) -> Encoder:
    encoder = _ENCODERS[cls, version] = cast("Encoder", _compile(_EncoderWriter, _checked_layout(cls, version)))
    return encoder


def _decoder(cls: type[Message], version: int) -> Decoder:
    decoder = _DECODERS[cls, version] = cast("Decoder", _compile(_DecoderWriter, _checked_layout(cls, version)))
    return decoder


@cache
def _compile(writer: type[_Writer], of: Layout) -> Callable[..., Any]:
    writing = writer(of)
    source = writing.source()
    filename = f"<{writing.verb} {of.cls.__name__} layout {_compile.cache_info().misses}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = dict(writing.names)
    exec(compile(source, filename, "exec"), namespace)
    return cast("Callable[..., Any]", namespace[writing.verb])


@lru_cache(maxsize=1024)
def _fixed(codes: str) -> struct.Struct:
    return struct.Struct(">" + codes)


def _too_long(what: str, length: int, remaining: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} claims length {length} where {remaining} bytes remain")


def _unexpected_null(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} is null, which this version does not allow")


def _minimum_size(of: Layout) -> int:
    """The fewest bytes that a structure of this layout takes, at least 1 so that counts can be checked against it."""
    return max(1, sum(_minimum_field_size(field, of.flexible) for field in of.fields) + of.flexible)


def _minimum_field_size(field: LayoutField, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.part is not None:
        return 1 if field.is_nullable else _minimum_size(field.part)
    if field.kind.code:
        return _fixed(field.kind.code).size
    if flexible:
        return 1
    return 2 if field.kind.name == "string" else 4


class _Writer:
    """Writes the source of one function: lines at a depth, names for temporaries, objects the source refers to."""

    verb = ""

    def __init__(self, of: Layout) -> None:
        self.layout = of
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"RemoteProtocolError": RemoteProtocolError, "too_long": _too_long}
        self._count = 0

    def source(self) -> str:
        raise NotImplementedError

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def refer(self, name: str, value: Any) -> str:
        self.names[name] = value
        return name

    def unpacker(self, codes: str) -> str:
        return self.refer(f"unpack_{codes.replace('?', 'bool_')}", _fixed(codes).unpack_from)

    def packer(self, codes: str) -> str:
        return self.refer(f"pack_{codes.replace('?', 'bool_')}", _fixed(codes).pack)


class _DecoderWriter(_Writer):
    """Writes decoders: in the source `b` is the buffer, `o` the offset and `end` where the buffer ends."""

    verb = "decode"

    def source(self) -> str:
        self.lines = ["def decode(b, o):"]
        self.line(1, "end = len(b)")
        value = self.structure(self.layout, 1)
        self.line(1, f"return {value}, o")
        return "\n".join(self.lines) + "\n"

    def structure(self, of: Layout, depth: int) -> str:
        """Write the decoding of a structure; returns the expression that builds it."""
        values: dict[str, str] = {}
        run: list[LayoutField] = []
        for field in of.fields:
            if isinstance(field.kind, Scalar) and field.kind.code and not field.is_array:
                run.append(field)
                continue
            self.fixed_run(run, values, depth)
            run = []
            values[field.name] = self.field(field, of, depth)
        self.fixed_run(run, values, depth)
        if of.flexible:
            self.tagged_fields(of, values, depth)
        arguments = []
        for name in of.cls.__struct_fields__:
            if name in values:
                arguments.append(values[name])
            else:
                arguments.append(self.default(of.cls, name))
        while arguments and arguments[-1] == "...":
            arguments.pop()
        cls = self.refer(of.cls.__name__, of.cls)
        if "..." not in arguments:
            return f"{cls}({', '.join(arguments)})"
        # A default between two decoded fields: name the decoded ones.
        named = ", ".join(f"{n}={values[n]}" for n in of.cls.__struct_fields__ if n in values)
        return f"{cls}({named})"

    def default(self, cls: type[Any], name: str) -> str:
        index = cls.__struct_fields__.index(name)
        defaults = cls.__struct_defaults__
        value = (
            defaults[index - len(cls.__struct_fields__)] if index >= len(cls.__struct_fields__) - len(defaults) else ...
        )
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if value == ZERO_UUID:
            return self.refer("ZERO_UUID", ZERO_UUID)
        return "..."

    def fixed_run(self, run: list[LayoutField], values: dict[str, str], depth: int) -> None:
        if not run:
            return
        codes = "".join(field.kind.code for field in run)
        unpack = self.unpacker(codes)
        for field in run:
            values[field.name] = self.fresh("v")
        targets = ", ".join(values[field.name] for field in run)
        self.line(
            depth, f"{targets}{',' if len(run) == 1 else ''} = {unpack}(b, o)  # {', '.join(f.name for f in run)}"
        )
        self.line(depth, f"o += {_fixed(codes).size}")
        # unpack_from looks at the whole buffer; inside a tagged field the end is nearer, which its size check catches.

    def field(self, field: LayoutField, of: Layout, depth: int) -> str:
        if field.is_array:
            return self.array(field, of, depth)
        if field.part is not None:
            return self.nested(field, field.part, depth)
        return self.sized(field, of.flexible, depth)

    def length(self, of_flexible: bool, code: str, depth: int) -> str:
        """Write the reading of a length or count, -1 for null; returns its variable."""
        n = self.fresh("n")
        if of_flexible:
            rest = self.refer("uvarint_rest", uvarint_rest)
            self.line(depth, f"{n} = b[o]; o += 1")
            self.line(depth, f"if {n} > 127: {n}, o = {rest}(b, o, {n})")
            self.line(depth, f"{n} -= 1")
        else:
            unpack = self.unpacker(code)
            self.line(depth, f"{n}, = {unpack}(b, o); o += {_fixed(code).size}")
        return n

    def null_branch(self, field: LayoutField, n: str, value: str, depth: int) -> None:
        self.line(depth, f"if {n} < 0:")
        if field.is_nullable:
            self.line(depth + 1, f"if {n} < -1: raise too_long({field.name!r}, {n}, end - o)")
            self.line(depth + 1, f"{value} = None")
        else:
            null = self.refer("unexpected_null", _unexpected_null)
            self.line(depth + 1, f"raise {null}({field.name!r})")

    def sized(self, field: LayoutField, flexible: bool, depth: int) -> str:
        """A string, bytes or records; in an array of strings, one element."""
        value = self.fresh("v")
        kind = field.kind
        if kind.code:
            unpack = self.unpacker(kind.code)
            self.line(depth, f"{value}, = {unpack}(b, o); o += {_fixed(kind.code).size}  # {field.name}")
            return value
        n = self.length(flexible, "h" if kind.name == "string" else "i", depth)
        self.null_branch(field, n, value, depth)
        self.line(depth, "else:")
        self.line(depth + 1, f"if {n} > end - o: raise too_long({field.name!r}, {n}, end - o)")
        cut = f"b[o:o + {n}]"
        shape = {"string": f"str({cut}, 'utf-8')", "bytes": f"bytes({cut})", "records": cut}[kind.name]
        self.line(depth + 1, f"{value} = {shape}; o += {n}")
        return value

    def array(self, field: LayoutField, of: Layout, depth: int) -> str:
        value = self.fresh("v")
        n = self.length(of.flexible, "i", depth)
        element = field._replace(is_array=False, is_nullable=False)
        self.null_branch(field, n, value, depth)
        self.line(depth, "else:")
        size = _minimum_field_size(element, of.flexible)
        self.line(depth + 1, f"if {n} * {size} > end - o: raise too_long({field.name!r}, {n}, end - o)")
        code = field.kind.code if isinstance(field.kind, Scalar) else ""
        if len(code) == 1:
            fixed = self.refer("fixed", _fixed)
            self.line(depth + 1, f"{value} = list({fixed}(f'{{{n}}}{code}').unpack_from(b, o)); o += {n} * {size}")
            return value
        self.line(depth + 1, f"{value} = []")
        self.line(depth + 1, f"for _ in range({n}):")
        if field.part is not None:
            item = self.structure(field.part, depth + 2)
        else:
            item = self.sized(element, of.flexible, depth + 2)
        self.line(depth + 2, f"{value}.append({item})")
        return value

    def nested(self, field: LayoutField, part: Layout, depth: int) -> str:
        if not field.is_nullable:
            return self.structure(part, depth)
        value = self.fresh("v")
        unpack = self.unpacker("b")
        self.line(depth, f"{value}, = {unpack}(b, o); o += 1  # {field.name}: -1 is null")
        self.line(depth, f"if {value} < 0:")
        self.line(depth + 1, f"{value} = None")
        self.line(depth, "else:")
        item = self.structure(part, depth + 1)
        self.line(depth + 1, f"{value} = {item}")
        return value

    def tagged_fields(self, of: Layout, values: dict[str, str], depth: int) -> None:
        rest = self.refer("uvarint_rest", uvarint_rest)
        for _, field in of.tagged:
            values[field.name] = self.fresh("v")
            self.line(depth, f"{values[field.name]} = {self.tagged_default(field)}")
        count, number, size, stop = (self.fresh(prefix) for prefix in ("t", "t", "t", "stop"))
        self.line(depth, f"{count} = b[o]; o += 1  # tagged fields")
        self.line(depth, f"if {count}:")
        depth += 1
        self.line(depth, f"if {count} > 127: {count}, o = {rest}(b, o, {count})")
        self.line(depth, f"for _ in range({count}):")
        depth += 1
        for name in (number, size):
            self.line(depth, f"{name} = b[o]; o += 1")
            self.line(depth, f"if {name} > 127: {name}, o = {rest}(b, o, {name})")
        self.line(depth, f"if {size} > end - o: raise too_long('a tagged field', {size}, end - o)")
        self.line(depth, f"{stop} = o + {size}")
        for index, (wanted, field) in enumerate(of.tagged):
            self.line(depth, f"{'elif' if index else 'if'} {number} == {wanted}:")
            item = self.field(field, of, depth + 1)
            self.line(depth + 1, f"{values[field.name]} = {item}")
            self.line(
                depth + 1, f"if o != {stop}: raise RemoteProtocolError('tagged field {field.name} has another size')"
            )
        if of.tagged:
            self.line(depth, "else:")
            depth += 1
        self.line(depth, f"o = {stop}")

    def tagged_default(self, field: LayoutField) -> str:
        if field.is_array and field.default == ():
            return "[]"
        if field.part is not None and field.default is not None:
            return f"{self.refer(field.part.cls.__name__, field.part.cls)}()"
        if isinstance(field.default, bytes) and field.default == ZERO_UUID:
            return self.refer("ZERO_UUID", ZERO_UUID)
        return repr(field.default)


class _EncoderWriter(_Writer):
    """Writes encoders: in the source `m` is the message, `out` the bytearray that grows."""

    verb = "encode"

    def source(self) -> str:
        self.lines = ["def encode(m, out, splices):"]
        self.structure(self.layout, "m", "out", 1)
        if len(self.lines) == 1:
            self.line(1, "pass")
        return "\n".join(self.lines) + "\n"

    def structure(self, of: Layout, m: str, out: str, depth: int) -> None:
        for field in of.absent:
            self.check_absent(of, field, m, depth)
        run: list[LayoutField] = []
        for field in of.fields:
            if isinstance(field.kind, Scalar) and field.kind.code and not field.is_array:
                run.append(field)
                continue
            self.fixed_run(run, m, out, depth)
            run = []
            self.field(field, of, f"{m}.{field.name}", out, depth)
        self.fixed_run(run, m, out, depth)
        if of.flexible:
            self.tagged_fields(of, m, out, depth)

    def check_absent(self, of: Layout, field: LayoutField, m: str, depth: int) -> None:
        wrong = self.refer("LocalProtocolError", LocalProtocolError)
        self.line(depth, f"if {self.differs(field, f'{m}.{field.name}')}:")
        self.line(
            depth + 1,
            f"raise {wrong}('this version of {of.cls.__name__} cannot carry {field.name}, which is not its default')",
        )

    def differs(self, field: LayoutField, value: str) -> str:
        """An expression: whether a value is not the field's default."""
        if field.default is None:
            return f"{value} is not None"
        if field.is_array:
            return f"{value} is None or len({value})" if field.is_nullable else value
        if not isinstance(field.kind, Scalar):
            return f"{value} != {self.refer(field.kind.__name__, field.kind)}()"
        return f"{value} != {field.default!r}"

    def fixed_run(self, run: list[LayoutField], m: str, out: str, depth: int) -> None:
        if not run:
            return
        codes = "".join(field.kind.code for field in run)
        pack = self.packer(codes)
        for field in run:
            if field.kind.name == "uuid":  # struct pads and cuts without a word
                self.check_uuid(f"{m}.{field.name}", field.name, depth)
        self.line(depth, f"{out} += {pack}({', '.join(f'{m}.{field.name}' for field in run)})")

    def check_uuid(self, value: str, name: str, depth: int) -> None:
        wrong = self.refer("LocalProtocolError", LocalProtocolError)
        self.line(depth, f"if len({value}) != 16: raise {wrong}('{name} is not a uuid of 16 bytes')")

    def field(self, field: LayoutField, of: Layout, value: str, out: str, depth: int) -> None:
        name = self.fresh("x")
        self.line(depth, f"{name} = {value}")
        if field.is_array:
            self.array(field, of, name, out, depth)
        elif field.part is not None:
            self.nested(field, field.part, name, out, depth)
        else:
            self.sized(field, of.flexible, name, out, depth)

    def length(self, n: str, flexible: bool, code: str, out: str, depth: int) -> None:
        if flexible:
            varint = self.refer("uvarint", uvarint)
            self.line(depth, f"if {n} < 127: {out}.append({n} + 1)")
            self.line(depth, f"else: {out} += {varint}({n} + 1)")
        else:
            self.line(depth, f"{out} += {self.packer(code)}({n})")

    def null(self, field: LayoutField, value: str, flexible: bool, code: str, out: str, depth: int) -> int:
        """Write the null case, or the refusal of it; returns the depth at which the other case goes on."""
        if not field.is_nullable:
            return depth  # None fails by itself: it has neither length nor encoding
        self.line(depth, f"if {value} is None:")
        if flexible:
            self.line(depth + 1, f"{out}.append(0)")
        else:
            self.line(depth + 1, f"{out} += {_fixed(code).pack(-1)!r}")
        self.line(depth, "else:")
        return depth + 1

    def sized(self, field: LayoutField, flexible: bool, value: str, out: str, depth: int) -> None:
        kind = field.kind
        if kind.code:
            if kind.name == "uuid":
                self.check_uuid(value, field.name, depth)
            self.line(depth, f"{out} += {self.packer(kind.code)}({value})")
            return
        code = "h" if kind.name == "string" else "i"
        depth = self.null(field, value, flexible, code, out, depth)
        if kind.name == "string":
            self.line(depth, f"{value} = {value}.encode()")
        n = self.fresh("n")
        self.line(depth, f"{n} = len({value})")
        self.length(n, flexible, code, out, depth)
        if kind.name == "records":
            self.line(depth, f"if isinstance({value}, (bytes, bytearray, memoryview)): {out} += {value}")
            self.line(depth, f"else: splices.append((len({out}), {value}))")
        else:
            self.line(depth, f"{out} += {value}")

    def array(self, field: LayoutField, of: Layout, value: str, out: str, depth: int) -> None:
        depth = self.null(field, value, of.flexible, "i", out, depth)
        n = self.fresh("n")
        self.line(depth, f"{n} = len({value})")
        self.length(n, of.flexible, "i", out, depth)
        code = field.kind.code if isinstance(field.kind, Scalar) else ""
        if len(code) == 1:
            fixed = self.refer("fixed", _fixed)
            self.line(depth, f"{out} += {fixed}(f'{{{n}}}{code}').pack(*{value})")
            return
        item = self.fresh("e")
        self.line(depth, f"for {item} in {value}:")
        if field.part is not None:
            before = len(self.lines)
            self.structure(field.part, item, out, depth + 1)
            if len(self.lines) == before:
                self.line(depth + 1, "pass")
        else:
            self.sized(field._replace(is_array=False, is_nullable=False), of.flexible, item, out, depth + 1)

    def nested(self, field: LayoutField, part: Layout, value: str, out: str, depth: int) -> None:
        if field.is_nullable:
            self.line(depth, f"if {value} is None:")
            self.line(depth + 1, f"{out}.append(255)  # -1: null")
            self.line(depth, "else:")
            depth += 1
            self.line(depth, f"{out}.append(1)")
        self.structure(part, value, out, depth)

    def tagged_fields(self, of: Layout, m: str, out: str, depth: int) -> None:
        if not of.tagged:
            self.line(depth, f"{out}.append(0)")
            return
        count, part = self.fresh("t"), self.fresh("tag")
        varint = self.refer("uvarint", uvarint)
        self.line(depth, f"{count} = 0; {part} = bytearray()")
        for number, field in of.tagged:
            inner = self.fresh("tag")
            self.line(depth, f"if {self.differs(field, f'{m}.{field.name}')}:")
            self.line(depth + 1, f"{count} += 1; {inner} = bytearray()")
            self.field(field, of, f"{m}.{field.name}", inner, depth + 1)
            self.line(depth + 1, f"{part} += {varint}({number}) + {varint}(len({inner})) + {inner}")
        self.line(depth, f"{out} += {varint}({count}) + {part}")
