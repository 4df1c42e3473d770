r"""`ssl.principal.mapping.rules`: from the subject of a certificate to the name of a principal.

```
rules ::= rule { "," rule }
rule  ::= "DEFAULT"                                    the whole name, as it is
        | "RULE:" pattern "/" replacement "/" ["L"|"U"]  in lower or upper case
```

The first rule whose pattern matches the whole name decides: all its matches in the name are replaced, as Java's
`String.replaceAll` does. In a replacement `$1` and `${name}` are groups, and `\` takes the next character literally; a
number of a group that the pattern does not have is literal text. In a pattern and a replacement `\/` is a slash. A name
that no rule matches is refused. Source: Kafka's `SslPrincipalMapper`.

Patterns run by RE2, in linear time, because names come from certificates. Differs from Kafka: what RE2 does not have
(look-around, back-references in a pattern) is refused at the start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import re2

from odradek.broker.security.tls.settings import TlsSettingsError

PROPERTY = "ssl.principal.mapping.rules"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_GROUP_NAME = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")


class UnmappedNameError(Exception):
    """No rule applies to the name of a certificate's subject, so its owner has no principal."""


class _Rule(NamedTuple):
    """One rule: DEFAULT if there is no pattern. `replacement` has text and numbers of groups."""

    pattern: re2._Regexp[str] | None
    replacement: tuple[str | int, ...] = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        replaced = self._replace_all(self.pattern, name)
        if self.case == "L":
            return replaced.lower()
        return replaced.upper() if self.case == "U" else replaced

    def _replace_all(self, pattern: re2._Regexp[str], name: str) -> str:
        parts: list[str] = []
        end = 0
        for match in pattern.finditer(name):
            parts.append(name[end : match.start()])
            parts += [(match[part] or "") if isinstance(part, int) else part for part in self.replacement]
            end = match.end()
        parts.append(name[end:])
        return "".join(parts)


class MappingRules:
    """The rules of one listener. Immutable."""

    def __init__(self, text: str = "DEFAULT") -> None:
        """Parse the property. Raises TlsSettingsError."""
        self._rules = _parse(text)

    def name(self, subject: str) -> str:
        """Return the principal's name for the subject's. Raises UnmappedNameError."""
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise UnmappedNameError(f"no rule of {PROPERTY} applies to the certificate of {subject}")


def _parse(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    for split in _SPLITTER.finditer(text.strip()):
        rule = split[1]
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            raise TlsSettingsError(
                f"{PROPERTY}: {rule!r} is no rule: write DEFAULT or RULE:pattern/replacement/, with L or U behind it"
            )
        if match[1] is not None:
            rules.append(_Rule(None))
        elif match[2] is not None:
            rules.append(_rule(match[2], match[3], match[4]))
    return rules


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        why = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise TlsSettingsError(f"{PROPERTY}: RE2 refuses the pattern {pattern!r}: {why}") from error
    return _Rule(compiled, _parsed_replacement(replacement, compiled.groups, compiled.groupindex), case)


def _parsed_replacement(replacement: str, groups: int, names: Mapping[str, int]) -> tuple[str | int, ...]:
    """Split a replacement into text and numbers of groups. Raises TlsSettingsError for what Java refuses at use."""
    parts: list[str | int] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\":
            if position == len(replacement):
                raise TlsSettingsError(f"{PROPERTY}: the replacement {replacement!r} ends with a backslash")
            parts.append(replacement[position])
            position += 1
        elif character == "$" and (named := _GROUP_NAME.match(replacement, position)) is not None:
            if named[1] not in names:
                raise TlsSettingsError(f"{PROPERTY}: the pattern has no group for {named[0]!r} in {replacement!r}")
            parts.append(names[named[1]])
            position = named.end()
        elif character == "$":
            number, position = _group_number(replacement, position, groups)
            parts.append("$" if number is None else number)
        else:
            parts.append(character)
    return tuple(parts)


def _group_number(replacement: str, position: int, groups: int) -> tuple[int | None, int]:
    """Return the group behind a `$` and the position after it; None if there is no such group.

    Of several digits as many belong to the number as make that of a group.
    """
    end = position
    while end < len(replacement) and replacement[end] in "0123456789":
        end += 1
    if end == position:
        raise TlsSettingsError(f"{PROPERTY}: in the replacement {replacement!r} a number must follow $; write \\$")
    if groups == 0 and replacement[position] != "0":
        raise TlsSettingsError(f"{PROPERTY}: the pattern has no group for {replacement!r}: write one in parentheses")
    number = int(replacement[position])
    if number > groups:
        return None, position
    position += 1
    while position < end and 10 * number + int(replacement[position]) <= groups:
        number = 10 * number + int(replacement[position])
        position += 1
    return number, position
