"""The base of classes that write the source of a function for a layout, and the compilation of such source.

The writers of decoders, encoders and error counters inherit from it.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, cast

from odradek.protocol.code_generation.codec_parts import fixed
from odradek.protocol.schema import Layout, LayoutField, Scalar, Structure


class SourceWriter:
    """Collects the lines of one function, and the objects that they refer to."""

    verb: ClassVar[str]

    def __init__(self, of: Layout) -> None:
        self.layout = of
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
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

    def refer_class(self, cls: type[Structure]) -> str:
        return self.refer(cls.__name__, cls)

    def unpacker(self, codes: str) -> str:
        return self.refer(f"unpack_{codes.replace('?', 'bool_')}", fixed(codes).unpack_from)

    def packer(self, codes: str) -> str:
        return self.refer(f"pack_{codes.replace('?', 'bool_')}", fixed(codes).pack)


def fixed_code(field: LayoutField) -> str:
    """Return the `struct` code of a field of fixed width, empty for others."""
    return "" if field.is_array or not isinstance(field.kind, Scalar) else field.kind.code


@cache
def compiled(writer: type[SourceWriter], of: Layout) -> Callable[..., Any]:
    """Return the function that `writer` writes for a layout, compiled at the first call. Tracebacks show its source."""
    writing = writer(of)
    source = writing.source()
    filename = f"<{writing.verb} {of.cls.__name__} layout {compiled.cache_info().misses}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = dict(writing.names)
    exec(compile(source, filename, "exec"), namespace)
    return cast("Callable[..., Any]", namespace[writing.verb])
