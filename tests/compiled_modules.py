"""The modules that setup.py compiles, and the constants of their classes, as their source has them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]


class ClassConstant(NamedTuple):
    """A name with a value in the body of a class: `OffsetIndex.entry_size`."""

    module: str
    class_name: str
    name: str
    is_class_variable: bool
    """Whether it is annotated with ClassVar."""
    value: Any

    def __str__(self) -> str:
        return f"{self.module}.{self.class_name}.{self.name}"


def compiled_modules() -> list[str]:
    """The paths of the modules' sources, from the repository on."""
    listed = re.search(r"^COMPILED = \[(.*?)\]", (REPOSITORY / "setup.py").read_text(), re.MULTILINE | re.DOTALL)
    assert listed is not None
    return re.findall(r"\w\S+\.py", listed[1])


def class_constants() -> list[ClassConstant]:
    """What the classes assign in their bodies. Fields of structures are left out: their classes have no such values."""
    return [
        ClassConstant(path.removesuffix(".py").replace("/", "."), node.name, *each)
        for path in compiled_modules()
        for node in ast.walk(ast.parse((REPOSITORY / path).read_text()))
        if isinstance(node, ast.ClassDef) and not {ast.unparse(base) for base in node.bases} & _STRUCTURES
        for statement in node.body
        for each in _assigned(statement)
    ]


_STRUCTURES = {"NamedTuple", "msgspec.Struct"}


def _assigned(statement: ast.stmt) -> list[tuple[str, bool, Any]]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name != "__slots__":
            return [(name, False, ast.literal_eval(value))]
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
            return [(name, ast.unparse(annotation).startswith("ClassVar"), ast.literal_eval(value))]
    return []
