"""Writes the source of decoders: one straight-line function per layout. `protocol.codec` compiles it."""

from __future__ import annotations

from typing import Any

from protocol.errors import RemoteProtocolError
from protocol.primitives import uvarint_rest
from protocol.schema import ZERO_UUID, Layout, LayoutField, Scalar
from protocol.source_writer import SourceWriter, fixed


def _too_long(what: str, length: int, remaining: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} claims length {length} where {remaining} bytes remain")


def _unexpected_null(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} is null, which this version does not allow")


def minimum_size(of: Layout) -> int:
    """The fewest bytes that a structure of this layout takes, at least 1 so that counts can be checked against it."""
    return max(1, sum(minimum_field_size(field, of.flexible) for field in of.fields) + of.flexible)


def minimum_field_size(field: LayoutField, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.part is not None:
        return 1 if field.is_nullable else minimum_size(field.part)
    if field.kind.code:
        return fixed(field.kind.code).size
    if flexible:
        return 1
    return 2 if field.kind.name == "string" else 4


class DecoderWriter(SourceWriter):
    """Writes decoders: in the source `b` is the buffer, `o` the offset and `end` where the buffer ends."""

    verb = "decode"

    def source(self) -> str:
        self.names.update(RemoteProtocolError=RemoteProtocolError, too_long=_too_long)
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
        self.line(depth, f"o += {fixed(codes).size}")
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
            self.line(depth, f"{n}, = {unpack}(b, o); o += {fixed(code).size}")
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
            self.line(depth, f"{value}, = {unpack}(b, o); o += {fixed(kind.code).size}  # {field.name}")
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
        size = minimum_field_size(element, of.flexible)
        self.line(depth + 1, f"if {n} * {size} > end - o: raise too_long({field.name!r}, {n}, end - o)")
        code = field.kind.code if isinstance(field.kind, Scalar) else ""
        if len(code) == 1:
            self.refer("fixed", fixed)
            self.line(depth + 1, f"{value} = list(fixed(f'{{{n}}}{code}').unpack_from(b, o)); o += {n} * {size}")
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
