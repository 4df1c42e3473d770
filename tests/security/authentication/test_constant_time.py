"""Secrets are compared in constant time: CVE-2021-38153. A rule over the source, since a test cannot measure it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
SECRET = re.compile(r"password|secret|proof|signature|stored_key|server_key|salted|digest|token$|hmac")
PACKAGES = ["protocol/sasl", "broker/security/authentication"]
MODULES = sorted(path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py"))
OPERATORS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def names(node: ast.expr) -> set[str]:
    """Return the name of a variable or attribute, or of the function whose result this is."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return {name} | names(value)
        case ast.Call(func=function):
            return names(function)
        case ast.Subscript(value=value):
            return names(value)
    return set()


def is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and all(map(is_constant, node.elts)))


def comparisons_of_secrets(source: str) -> list[str]:
    """Return the comparisons of a secret by an operator that stops at the first difference.

    With a constant nothing can be found out, nor by lengths.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(operator, OPERATORS) for operator in node.ops):
            operands = [node.left, *node.comparators]
            if any(map(is_constant, operands)) or any(
                isinstance(each, ast.Call) and names(each) == {"len"} for each in operands
            ):
                continue
            if any(SECRET.search(name) for each in operands for name in names(each)):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_secret_is_compared_by_an_operator(module: Path) -> None:
    assert comparisons_of_secrets(module.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "message.password == expected",
        "expected != users[name].password",
        "final.proof == compute()",
        "hashlib.sha256(key).digest() == credential.stored_key",
        "client_proof(mechanism, salted) != theirs",
        "token in tokens",
        "self._secret == other",
    ],
)
def test_the_rule_finds_a_comparison(source: str) -> None:
    assert comparisons_of_secrets(source) == [source]


@pytest.mark.parametrize(
    "source", ["len(proof) != size", "password == ''", "hmac.compare_digest(a, b)", "name == user"]
)
def test_the_rule_allows_what_reveals_nothing(source: str) -> None:
    assert comparisons_of_secrets(source) == []


def test_the_modules_that_compare_secrets_are_examined() -> None:
    users = [path.name for path in MODULES if "compare_digest" in path.read_text()]
    assert {"scram.py", "scram_client.py", "plain_exchange.py", "scram_exchange.py"} <= set(users)
