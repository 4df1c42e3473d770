"""The source of encoders: a straight-line function for each layout, which `odradek.protocol.codec` compiles."""

from __future__ import annotations

from odradek.protocol.code_generation import codec_parts as parts
from odradek.protocol.code_generation.codec_parts import STEP_BYTES
from odradek.protocol.code_generation.source_writer import SourceWriter, fixed_code
from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.schema import EncodedPart, Layout, LayoutField, Scalar
from odradek.protocol.uvarint import uvarint

BYTES_LIKE = (bytes, bytearray, memoryview)


class EncoderWriter(SourceWriter):
    """Writes encoders: in the source `m` is the message, `out` the bytearray to append to.

    Values of fixed width are collected in a run, so that one call packs neighbours and the length or count after them.
    All other code that writes to `out` or begins a block must `flush` the run first.
    """

    verb = "encode"

    def __init__(self, of: Layout) -> None:
        super().__init__(of)
        self._run: list[tuple[str, str]] = []  # code, expression; "x" is a zero byte without an expression

    def source(self) -> str:
        self.refer("LocalProtocolError", LocalProtocolError)
        self.lines = ["def encode(m, out, splices):"]
        self.begin()
        self.structure(self.layout, "m", "out", 1)
        self.flush("out", 1)
        if len(self.lines) == 1:
            self.line(1, "pass")
        self.end()
        return "\n".join(self.lines) + "\n"

    def begin(self) -> None:
        """Write code before the first field; for subclasses."""

    def end(self) -> None:
        """Write code after the last field; for subclasses."""

    def after_element(self, out: str, depth: int) -> None:
        """Write code after each element of an array, other than arrays of numbers; for subclasses."""

    def structure(self, of: Layout, m: str, out: str, depth: int) -> None:
        for field in of.absent:
            self.line(depth, f"if {self.differs(field, f'{m}.{field.name}')}:")
            reason = f"this version of {of.cls.__name__} cannot carry {field.name}, which is not its default"
            self.line(depth + 1, f"raise LocalProtocolError({reason!r})")
        for field in of.fields:
            self.field(field, of.flexible, f"{m}.{field.name}", out, depth)
        if of.flexible:
            self.tagged_fields(of, m, out, depth)

    def differs(self, field: LayoutField, value: str) -> str:
        """Return an expression that is true if a value is not the field's default."""
        if field.default is None:
            return f"{value} is not None"
        if field.is_array:
            return f"{value} is None or len({value})" if field.is_nullable else value
        if isinstance(field.kind, Scalar):
            return f"{value} != {field.default!r}"
        # An instance to compare with, used nowhere else.
        return f"{value} != {self.refer(f'default_{field.kind.__name__}', field.kind())}"

    def field(self, field: LayoutField, flexible: bool, value: str, out: str, depth: int) -> None:
        if code := fixed_code(field):
            if field.kind.name == "uuid":  # struct pads and truncates without an error
                self.line(depth, f"if len({value}) != 16: raise LocalProtocolError('{field.name} is not 16 bytes')")
            self._run.append((code, value))
            return
        x = self.fresh("x")
        self.line(depth, f"{x} = {value}")
        if field.is_array:
            self.array(field, flexible, x, out, depth)
        elif field.part is not None:
            self.nested(field, field.part, x, out, depth)
        else:
            self.sized(field, flexible, x, out, depth)

    def flush(self, out: str, depth: int) -> None:
        """Write the packing of the run."""
        if self._run:
            self.line(depth, self._packed(out, self._run))
            self._run = []

    def _packed(self, out: str, run: list[tuple[str, str]], then: str = "") -> str:
        """Return a statement that appends a run, and after it the bytes of the expression `then`."""
        codes = "".join(code for code, _ in run)
        values = ", ".join(value for _, value in run if value)
        if codes in ("x", "B") and not then:
            return f"{out}.append({values or 0})"
        terms = [f"{self.packer(codes)}({values})"] if run else []
        return f"{out} += {' + '.join(terms + ([then] if then else []))}"

    def length(self, field: LayoutField, flexible: bool, n: str, out: str, depth: int) -> None:
        """Write the run, and after it a length or count; -1 is null."""
        is_string = not field.is_array and field.kind.name == "string"
        if not flexible:
            self._run.append(("h" if is_string else "i", n))
            self.flush(out, depth)
            return
        long = (
            f"{self.refer('string_length', parts.string_length)}({n})"
            if is_string
            else f"{self.refer('uvarint', uvarint)}({n} + 1)"
        )
        self.line(depth, f"if {n} < 127: {self._packed(out, [*self._run, ('B', f'{n} + 1')])}")
        self.line(depth, f"else: {self._packed(out, self._run, long)}")
        self._run = []

    def measure(self, field: LayoutField, x: str, empty: str, prepare: str, depth: int) -> str:
        """Write the assignment of a length or count, -1 for null, whose value becomes `empty`; return its variable."""
        n = self.fresh("n")
        if not field.is_nullable:  # None raises: it has neither a length nor an encoding
            self.line(depth, f"{prepare}{n} = len({x})")
            return n
        self.line(depth, f"if {x} is None: {n} = -1; {x} = {empty}")
        self.line(depth, f"else: {prepare}{n} = len({x})")
        return n

    def sized(self, field: LayoutField, flexible: bool, x: str, out: str, depth: int) -> None:
        """Write the encoding of a string, bytes or records."""
        prepare = f"{x} = {x}.encode(); " if field.kind.name == "string" else ""
        n = self.measure(field, x, "b''", prepare, depth)
        self.length(field, flexible, n, out, depth)
        if field.kind.name == "records":
            self.line(depth, f"if isinstance({x}, {self.refer('bytes_like', BYTES_LIKE)}): {out} += {x}")
            self.line(depth, f"else: splices.append((len({out}), {x}))")
        else:
            self.line(depth, f"{out} += {x}")

    def array(self, field: LayoutField, flexible: bool, x: str, out: str, depth: int) -> None:
        n = self.measure(field, x, "()", "", depth)
        self.length(field, flexible, n, out, depth)
        code = field.kind.code if isinstance(field.kind, Scalar) else ""
        if len(code) == 1:
            table = self.refer(f"short_array_{code.replace('?', 'bool')}", parts.short_array_packers(code))
            self.refer("fixed", parts.fixed)
            self.line(depth, f"if 0 < {n} < {parts.SHORT_ARRAY}: {out} += {table}[{n}](*{x})")
            self.line(depth, f"elif {n} > 0: {out} += fixed(f'{{{n}}}{code}').pack(*{x})")
            return
        item = self.fresh("e")
        self.line(depth, f"for {item} in {x}:")
        before = len(self.lines)
        if field.part is not None and field.may_be_encoded:
            encoded = self.refer("EncodedPart", EncodedPart)
            self.line(depth + 1, f"if {item}.__class__ is {encoded}: {out} += {item}.content")
            self.line(depth + 1, "else:")
            self.structure(field.part, item, out, depth + 2)
            self.flush(out, depth + 2)
        elif field.part is not None:
            self.structure(field.part, item, out, depth + 1)
        else:
            self.field(field._replace(is_array=False, is_nullable=False), flexible, item, out, depth + 1)
        self.flush(out, depth + 1)
        self.after_element(out, depth + 1)
        if len(self.lines) == before:
            self.line(depth + 1, "pass")

    def nested(
        self, field: LayoutField, part: Layout, x: str, out: str, depth: int, *, is_tagged: bool = False
    ) -> None:
        if not field.is_nullable:
            self.structure(part, x, out, depth)
            return
        self.flush(out, depth)
        null = "0)  # a varint" if is_tagged else "255)  # -1"
        self.line(depth, f"if {x} is None: {out}.append({null}: null")
        self.line(depth, "else:")
        self._run.append(("B", "1"))
        self.structure(part, x, out, depth + 1)
        self.flush(out, depth + 1)

    def tagged_fields(self, of: Layout, m: str, out: str, depth: int) -> None:
        if not of.tagged:
            self._run.append(("x", ""))  # a count of 0
            return
        self.flush(out, depth)
        varint = self.refer("uvarint", uvarint)
        differing = [self.differs(field, f"{m}.{field.name}") for _, field in of.tagged]
        self.line(depth, f"if {' or '.join(differing)}:")
        count, tags = self.fresh("t"), self.fresh("tags")
        self.line(depth + 1, f"{count} = 0; {tags} = bytearray()")
        for (number, field), differs in zip(of.tagged, differing, strict=True):
            tag = self.fresh("tag")
            self.line(depth + 1, f"if {differs}:")
            self.line(depth + 2, f"{tag} = bytearray()")
            if field.part is not None and not field.is_array:
                self.nested(field, field.part, f"{m}.{field.name}", tag, depth + 2, is_tagged=True)
            else:
                self.field(field, True, f"{m}.{field.name}", tag, depth + 2)
            self.flush(tag, depth + 2)
            self.line(depth + 2, f"{count} += 1; {tags} += {varint}({number}) + {varint}(len({tag})) + {tag}")
        self.line(depth + 1, f"{out} += {varint}({count}) + {tags}")
        self.line(depth, f"else: {out}.append(0)")


class EncoderInStepsWriter(EncoderWriter):
    """Writes encoders of large responses: generators that yield after every few KiB of array elements."""

    def begin(self) -> None:
        self.line(1, f"stop = len(out) + {STEP_BYTES}")

    def end(self) -> None:
        self.line(1, "if False: yield  # a generator also where there is no array")

    def after_element(self, out: str, depth: int) -> None:
        if out == "out":  # otherwise the value of a tagged field, which is short
            self.line(depth, f"if len(out) > stop: stop = len(out) + {STEP_BYTES}; yield")
