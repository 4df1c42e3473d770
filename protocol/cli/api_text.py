"""APIs as text: the list of all, one version as a tree of fields, or the changes from version to version.

The descriptions of fields and versions are the comments and docstrings in `odradek.protocol.messages`.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache

from odradek.protocol import codec
from odradek.protocol.api import NAMES, Api, by_key
from odradek.protocol.cli.field_text import default_text, type_text
from odradek.protocol.header import request_header_version, response_header_version
from odradek.protocol.schema import Layout, LayoutField, Message, Structure, layout, spec

WIDTH = 120
COMMENT_COLUMN = 52
_FIELD = re.compile(r"(\w+): ")


def show_list() -> Iterator[str]:
    """Yield a line for each API."""
    yield f"{'key':>3}  {'name':<28} {'versions':<9} flexible"
    for key in sorted(NAMES):
        api = by_key(key)
        flexible = "never" if api.flexible_since is None else f"from {api.flexible_since}"
        yield f"{key:>3}  {api.name:<28} {_range(api.request):<9} {flexible}"


def show_version(api: Api, version: int) -> Iterator[str]:
    """Yield request and response of one version: headers, fields, and the source of their encoders and decoders."""
    request_header = request_header_version(api.key, version)
    response_header = response_header_version(api.key, version)
    yield f"{api.name} (API key {api.key}), version {version} of {_range(api.request)}"
    for cls, header in ((api.request, request_header), (api.response, response_header)):
        of = layout(cls, version)
        yield ""
        kind = "request" if cls is api.request else "response"
        flexible = "flexible" if of.flexible else "not flexible"
        yield f"{cls.__name__} v{version}, {flexible}, after {kind} header v{header}"
        yield from _tree(of, 1)
    for cls in (api.request, api.response):
        for verb, source in (("decode", codec.decoder_source), ("encode", codec.encoder_source)):
            yield ""
            yield f"# {verb} {cls.__name__} v{version}"
            yield from source(cls, version).rstrip().splitlines()


def show_history(api: Api) -> Iterator[str]:
    """Yield the purpose of an API, and what each version changed in request and response."""
    yield from (sys.modules[api.request.__module__].__doc__ or "").rstrip().splitlines()
    for cls in (api.request, api.response):
        yield ""
        yield cls.__name__
        yield from textwrap.indent(inspect.cleandoc(cls.__doc__ or ""), "    ").splitlines()
        yield ""
        yield from _changes(cls)


def _range(cls: type[Message]) -> str:
    first, last = spec(cls).first_version, spec(cls).last_version
    return f"{first}–{last}" if first < last else str(first)


def _tree(of: Layout, depth: int) -> Iterator[str]:
    comments = _comments(of.cls)
    numbered = [(None, field) for field in of.fields] + list(of.tagged)
    for number, field in numbered:
        default = default_text(field)
        text = f"{'    ' * depth}{field.name}: {type_text(field)}{f' = {default}' if default else ''}"
        yield from _commented(text if number is None else f"{text}  (tag {number})", comments.get(field.name, ""))
        if field.part is not None:
            yield from _tree(field.part, depth + 1)


def _commented(text: str, comment: str) -> Iterator[str]:
    """Yield the comment beside the text, or below a long text, wrapped at the right margin."""
    if not comment:
        yield text
        return
    first, *rest = textwrap.wrap(comment, WIDTH - COMMENT_COLUMN)
    if len(text) > COMMENT_COLUMN - 2:
        yield text
        text = ""
    yield f"{text:<{COMMENT_COLUMN}}{first}"
    yield from (" " * COMMENT_COLUMN + line for line in rest)


@cache
def _comments(cls: type[Structure]) -> dict[str, str]:
    """Return the comment of each field in the source: at the end of its line, or on the lines above it."""
    comments: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(cls).splitlines():
        text = line.strip()
        if text.startswith("# "):
            above.append(text[2:])
            continue
        if match := _FIELD.match(text):
            comments[match[1]] = text.partition("  # ")[2] or " ".join(above)
        above = []
    return comments


def _changes(cls: type[Message]) -> Iterator[str]:
    declared = spec(cls)
    before: dict[str, str] = {}
    was_flexible = False
    for version in range(declared.first_version, declared.last_version + 1):
        of = layout(cls, version)
        now = dict(_flat(of, ""))
        lines = ["  flexible"] if of.flexible and not was_flexible else []
        lines += [f"- {path}: {text}" for path, text in before.items() if path not in now]
        for path, text in now.items():
            if path not in before:
                lines.append(f"+ {path}: {text}")
            elif before[path] != text:
                lines.append(f"  {path}: {before[path]} -> {text}")
        if version == declared.first_version:
            lines = [line.removeprefix("+").lstrip() for line in lines] or ["no fields"]
        first, *rest = lines or ["  the same"]
        yield f"    {f'v{version}':<4} {first}"
        yield from (f"         {line}" for line in rest)
        before, was_flexible = now, of.flexible


def _flat(of: Layout, prefix: str) -> Iterator[tuple[str, str]]:
    numbered: list[tuple[int | None, LayoutField]] = [(None, field) for field in of.fields]
    for number, field in [*numbered, *of.tagged]:
        yield f"{prefix}{field.name}", type_text(field) + ("" if number is None else f" (tag {number})")
        if field.part is not None:
            yield from _flat(field.part, f"{prefix}{field.name}{'[]' if field.is_array else ''}.")
