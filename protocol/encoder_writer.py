"""Writes the source of encoders: one straight-line function per layout. `protocol.codec` compiles it."""

from __future__ import annotations

from protocol.errors import LocalProtocolError
from protocol.primitives import uvarint
from protocol.schema import Layout, LayoutField, Scalar
from protocol.source_writer import SourceWriter, fixed


class EncoderWriter(SourceWriter):
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
            self.line(depth + 1, f"{out} += {fixed(code).pack(-1)!r}")
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
            self.refer("fixed", fixed)
            self.line(depth, f"{out} += fixed(f'{{{n}}}{code}').pack(*{value})")
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
