"""The source of decoders: a straight-line function for each layout, which `odradek.protocol.codec` compiles."""

from __future__ import annotations

from typing import Any

from odradek.protocol.code_generation import codec_parts as parts
from odradek.protocol.code_generation.codec_parts import SHORT_ARRAY, SHORT_BYTES, STEP_BYTES, fixed
from odradek.protocol.code_generation.source_writer import SourceWriter, fixed_code
from odradek.protocol.schema import ZERO_UUID, Layout, LayoutField, Scalar, fields
from odradek.protocol.uvarint import uvarint_rest


def minimum_size(of: Layout) -> int:
    """Return the least bytes of a structure with this layout; at least 1, so that counts can be checked against it."""
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
    """Writes decoders: in the source `b` is the buffer, `o` the offset and `end` where the buffer ends.

    Fields of fixed width are collected in a run, so that one call unpacks neighbours and the length after them. All
    other code that moves `o` or begins a block must `flush` the run first; the expression of a value is valid only
    after that.
    """

    verb = "decode"

    def __init__(self, of: Layout) -> None:
        super().__init__(of)
        self._run: list[tuple[str, str, str]] = []  # code, variable, comment

    def source(self) -> str:
        self.refer("bad_length", parts.bad_length)
        self.lines = ["def decode(b, o):"]
        self.line(1, "end = len(b)")
        self.begin()
        value = self.structure(self.layout, 1)
        self.flush(1)
        self.line(1, f"return {value}, o")
        self.end()
        return "\n".join(self.lines) + "\n"

    def begin(self) -> None:
        """Write code before the first field; for subclasses."""

    def end(self) -> None:
        """Write code after the last field; for subclasses."""

    def elements(self, n: str, depth: int) -> None:
        """Write code after the number of elements of an array is read; for subclasses."""

    def after_element(self, depth: int) -> None:
        """Write code after each element of an array, other than arrays of numbers; for subclasses."""

    def structure(self, of: Layout, depth: int) -> str:
        """Write the decoding of a structure; return the expression that creates it."""
        values = {field.name: self.field(field, of.flexible, depth) for field in of.fields}
        if of.flexible:
            self.tagged_fields(of, values, depth)
        declared = list(fields(of.cls))
        while declared and declared[-1].name not in values:  # the class has the defaults of the last ones
            declared.pop()
        arguments = (values.get(field.name) or self.default(field.default) for field in declared)
        return f"{self.refer_class(of.cls)}({', '.join(arguments)})"

    def default(self, value: Any) -> str:
        """Return an expression for the value of an absent field."""
        if value in ([], ()):
            return "[]"
        if isinstance(value, type):
            return f"{self.refer_class(value)}()"
        if value == ZERO_UUID:
            return self.refer("ZERO_UUID", ZERO_UUID)
        return repr(value)

    def field(self, field: LayoutField, flexible: bool, depth: int) -> str:
        """Write the decoding of a field; return an expression for its value."""
        if code := fixed_code(field):
            return self.take(code, "v", field.name)
        if field.part is not None and not field.is_array:
            return self.nested(field, field.part, depth)
        value = self.fresh("v")
        if field.is_array:
            self.array(field, flexible, value, depth)
        elif field.kind.name == "records":
            n = self.length(field, flexible, depth)
            depth = self.check(field, n, 1, value, depth)
            self.line(depth, f"{value} = b[o:o + {n}]; o += {n}  # {field.name}")
        else:
            self.text(field, flexible, value, depth)
        return value

    def take(self, code: str, prefix: str, what: str) -> str:
        """Add a value of fixed width to the run; return its variable."""
        variable = self.fresh(prefix)
        self._run.append((code, variable, what))
        return variable

    def flush(self, depth: int) -> None:
        """Write the unpacking of the run."""
        if not self._run:
            return
        codes = "".join(code for code, _, _ in self._run)
        variables = ", ".join(variable for _, variable, _ in self._run)
        whats = ", ".join(what for _, _, what in self._run if what)
        comment = f"  # {whats}" if whats else ""
        if codes == "B":
            self.line(depth, f"{variables} = b[o]; o += 1{comment}")
        else:
            comma = "," if len(self._run) == 1 else ""
            self.line(depth, f"{variables}{comma} = {self.unpacker(codes)}(b, o); o += {fixed(codes).size}{comment}")
        self._run.clear()

    def first_length(self, field: LayoutField, flexible: bool, depth: int) -> str:
        """Write the reading of a length or count, -1 for null; of a compact one only the first byte."""
        if flexible and not self._run:
            n = self.fresh("n")
            self.line(depth, f"{n} = b[o] - 1; o += 1")
            return n
        is_string = not field.is_array and field.kind.name == "string"
        n = self.take("B" if flexible else "h" if is_string else "i", "n", "")
        self.flush(depth)
        if flexible:
            self.line(depth, f"{n} -= 1")
        return n

    def other_length(self, flexible: bool, n: str, depth: int) -> None:
        """Write the reading of the other bytes of a compact length."""
        if flexible:
            self.line(depth, f"if {n} > 126: {n}, o = {self.refer('long_length', parts.long_length)}(b, o, {n})")

    def length(self, field: LayoutField, flexible: bool, depth: int) -> str:
        """Write the reading of a whole length or count, -1 for null; return its variable."""
        n = self.first_length(field, flexible, depth)
        self.other_length(flexible, n, depth)
        return n

    def check(self, field: LayoutField, n: str, size: int, value: str, depth: int) -> int:
        """Write the null case, and the check that n times `size` bytes remain; return the depth to continue at."""
        total = n if size == 1 else f"{n} * {size}"
        unless = f"if not -1 < {total} <= end - o: raise bad_length({field.name!r}, {n}, end - o)"
        if not field.is_nullable:
            self.line(depth, unless)
            return depth
        self.line(depth, f"if {n} == -1: {value} = None")
        self.line(depth, f"el{unless}")
        self.line(depth, "else:")
        return depth + 1

    def text(self, field: LayoutField, flexible: bool, value: str, depth: int) -> None:
        """Write the decoding of a string or bytes."""
        n = self.first_length(field, flexible, depth)
        is_string = field.kind.name == "string"
        content = f"{self.refer('short_bytes', parts.short_bytes)}[{n}](b, o)[0]"
        if is_string:
            content += ".decode('utf-8', 'replace')"
        self.if_short(field, n, SHORT_BYTES, f"{value} = {content}; o += {n}", value, depth)
        read = self.refer("read_string", parts.read_string) if is_string else self.refer("read_bytes", parts.read_bytes)
        self.if_long(field, flexible, n, f"{read}(b, o, {n}, {field.name!r}", value, depth)

    def numbers(self, field: LayoutField, flexible: bool, code: str, value: str, depth: int) -> None:
        """Write the decoding of an array of numbers."""
        n = self.first_length(field, flexible, depth)
        table = self.refer(f"short_array_{code.replace('?', 'bool')}", parts.short_array_unpackers(code))
        content = f"[*{table}[{n}](b, o)]; o += {n} * {fixed(code).size}"
        self.if_short(field, n, SHORT_ARRAY, f"{value} = {content}", value, depth)
        read = self.refer("read_array", parts.read_array)
        self.if_long(field, flexible, n, f"{read}(b, o, {n}, {field.name!r}, {code!r}", value, depth)
        self.elements(n, depth)

    def if_short(self, field: LayoutField, n: str, limit: int, then: str, value: str, depth: int) -> None:
        """Write the null case, and the case of values shorter than `limit`."""
        if field.is_nullable:
            self.line(depth, f"if {n} == -1: {value} = None")
        self.line(depth, f"{'elif' if field.is_nullable else 'if'} -1 < {n} < {limit}: {then}  # {field.name}")

    def if_long(self, field: LayoutField, flexible: bool, n: str, call: str, value: str, depth: int) -> None:
        """Write the case of all other values: `call` reads them."""
        self.line(depth, "else:")
        self.other_length(flexible, n, depth + 1)
        self.line(depth + 1, f"{value}, o = {call}, nullable={field.is_nullable})")

    def array(self, field: LayoutField, flexible: bool, value: str, depth: int) -> None:
        code = field.kind.code if isinstance(field.kind, Scalar) else ""
        if len(code) == 1:
            self.numbers(field, flexible, code, value, depth)
            return
        n = self.length(field, flexible, depth)
        element = field._replace(is_array=False, is_nullable=False)
        depth = self.check(field, n, minimum_field_size(element, flexible), value, depth)
        self.elements(n, depth)
        self.line(depth, f"{value} = []  # {field.name}")
        self.line(depth, f"for _ in range({n}):")
        item = self.field(element, flexible, depth + 1)
        self.flush(depth + 1)
        self.line(depth + 1, f"{value}.append({item})")
        self.after_element(depth + 1)

    def nested(self, field: LayoutField, part: Layout, depth: int, *, is_tagged: bool = False) -> str:
        if not field.is_nullable:
            return self.structure(part, depth)
        if is_tagged:
            value = self.take("B", "v", f"{field.name}: 0 is null")
            is_null = f"not {value}"
        else:
            value = self.take("b", "v", f"{field.name}: -1 is null")
            is_null = f"{value} < 0"
        self.flush(depth)
        self.line(depth, f"if {is_null}: {value} = None")
        self.line(depth, "else:")
        item = self.structure(part, depth + 1)
        self.flush(depth + 1)
        self.line(depth + 1, f"{value} = {item}")
        return value

    def tagged_fields(self, of: Layout, values: dict[str, str], depth: int) -> None:
        count = self.take("B", "t", "tagged fields")
        self.flush(depth)
        if not of.tagged:
            skip = self.refer("skip_tagged_fields", parts.skip_tagged_fields)
            self.line(depth, f"if {count}: o = {skip}(b, o, {count})")
            return
        for _, field in of.tagged:
            values[field.name] = self.fresh("v")
            self.line(depth, f"{values[field.name]} = {self.default(field.default)}  # {field.name}")
        number, stop = self.fresh("t"), self.fresh("stop")
        self.line(depth, f"if {count}:")
        rest = self.refer("uvarint_rest", uvarint_rest)
        self.line(depth + 1, f"if {count} > 127: {count}, o = {rest}(b, o, {count})")
        too_many = self.refer("too_many_tagged_fields", parts.too_many_tagged_fields)
        self.line(depth + 1, f"if {count} > {parts.MAX_TAGGED_FIELDS}: raise {too_many}({count})")
        self.line(depth + 1, f"for _ in range({count}):")
        depth += 2
        self.line(depth, f"{number}, o, {stop} = {self.refer('read_tag', parts.read_tag)}(b, o)")
        for index, (wanted, field) in enumerate(of.tagged):
            self.line(depth, f"{'elif' if index else 'if'} {number} == {wanted}:")
            if field.part is not None and not field.is_array:
                item = self.nested(field, field.part, depth + 1, is_tagged=True)
            else:
                item = self.field(field, True, depth + 1)
            self.flush(depth + 1)
            self.line(depth + 1, f"{values[field.name]} = {item}")
            bad_tag = self.refer("bad_tag", parts.bad_tag)
            self.line(depth + 1, f"if o != {stop}: raise {bad_tag}({field.name!r})")
        self.line(depth, f"else: o = {stop}")


class DecoderInStepsWriter(DecoderWriter):
    """Writes decoders of large requests: generators that yield after every few KiB of array elements.

    They raise RemoteProtocolError if all arrays together have more than `MAX_ROWS` elements.
    """

    def begin(self) -> None:
        self.line(1, f"rows = 0; stop = o + {STEP_BYTES}")

    def end(self) -> None:
        self.line(1, "yield  # a generator also where there is no array")

    def elements(self, n: str, depth: int) -> None:
        self.line(depth, f"rows += {n}")
        too_many = self.refer("too_many_rows", parts.too_many_rows)
        self.line(depth, f"if rows > {parts.MAX_ROWS}: raise {too_many}(rows)")

    def after_element(self, depth: int) -> None:
        self.line(depth, f"if o > stop: stop = o + {STEP_BYTES}; yield")
