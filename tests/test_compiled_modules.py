"""The modules that setup.py compiles mean the same compiled and plain. The tests pass on compiled modules, too."""

from __future__ import annotations

import ast
import re
from enum import Enum
from importlib import import_module

import pytest

from tests.compiled_modules import REPOSITORY, ClassConstant, class_constants, compiled_modules


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def test_what_make_compile_compiles_is_there_and_keeps_its_meaning() -> None:
    assert len(compiled_modules()) > 10
    for module in compiled_modules():
        for keywords in re.findall(r"\(msgspec\.Struct((?:, \w+=\w+)*)\):", text(module)):
            assert set(re.findall(r"(\w+)=", keywords)) <= {"frozen", "gc"}, f"mypyc drops keywords of {module}"


def test_generators_of_what_is_compiled_are_not_needed_to_be_lazy() -> None:
    """mypyc makes a list of a generator expression, but in calls of `any`, `next` and some others."""
    at_once = {"all", "any", "dict", "frozenset", "join", "list", "max", "min", "next", "set", "sorted", "sum", "tuple"}
    for module in compiled_modules():
        tree = ast.parse(text(module))
        harmless = [
            argument
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in at_once
            for argument in call.args
        ]
        lazy = [each.lineno for each in ast.walk(tree) if isinstance(each, ast.GeneratorExp) and each not in harmless]
        assert not lazy, f"{module}, lines {lazy}"


def test_nothing_compiled_waits_while_an_exception_is_handled() -> None:
    """mypyc leaves that exception as the thread's handled one: a `raise` elsewhere raises it, or ends in a TypeError.

    So neither an `except` nor a `finally` waits or yields. The end of an `async with` is such a block, too, but that of
    `asyncio.timeout` waits for nothing.
    """
    suspends = ast.Await | ast.AsyncFor | ast.AsyncWith | ast.Yield | ast.YieldFrom
    for module in compiled_modules():
        nodes = list(ast.walk(ast.parse(text(module))))
        blocks: list[ast.stmt | ast.excepthandler] = [
            each
            for block in nodes
            if isinstance(block, ast.Try | ast.TryStar)
            for each in block.handlers + block.finalbody
        ]
        waits = [node.lineno for block in blocks for node in ast.walk(block) if isinstance(node, suspends)]
        managers = [item.context_expr for node in nodes if isinstance(node, ast.AsyncWith) for item in node.items]
        waits += [each.lineno for each in managers if not ast.unparse(each).startswith("asyncio.timeout(")]
        assert not waits, f"{module}, lines {waits}"


def class_of(constant: ClassConstant) -> type:
    found = getattr(import_module(constant.module), constant.class_name)
    assert isinstance(found, type)
    return found


@pytest.mark.parametrize("constant", class_constants(), ids=str)
def test_a_constant_can_be_read_from_its_class(constant: ClassConstant) -> None:
    """Without ClassVar mypyc makes an attribute of instances, and the class then has a descriptor of that name."""
    assert constant.is_class_variable or issubclass(class_of(constant), Enum)
    assert getattr(class_of(constant), constant.name) == constant.value
