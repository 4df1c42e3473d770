"""The parser of `sasl_jaas_config`: one entry of a JAAS configuration, as Kafka's clients have it in a property.

```
org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";
└─ login module ────────────────────────────────────────┘ flag    └─ options ─────────────────────┘
```
A value is a word or quoted, with the escapes of Java's StreamTokenizer in quotes: a letter for a control character, up
to three octal digits, and any other character for itself. The module is a name that selects a mechanism: no class is
loaded. Errors never repeat a part of the text, because it has passwords.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = re.compile(
    r"\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;\"']+))|\s*(\S)", re.DOTALL
)  # a quoted word in two ways, punctuation, a word; the last group: nothing of these

_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROL: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasEntry(NamedTuple):
    """A login module and its options."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module!r}, options [hidden])"


def parse_jaas(text: str) -> JaasEntry:
    """Parse the text. Raises ValueError, whose message says what is wrong with it."""
    tokens = list(_tokens(text))
    if not tokens:
        raise ValueError("it is empty")
    module = tokens[0].text
    if len(tokens) < 2 or tokens[1].text.lower() not in _FLAGS:
        raise ValueError('it does not begin with a login module and "required"')
    if not tokens[-1].is_mark(";"):
        raise ValueError("it does not end in a semicolon")
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for index in range(0, len(rest), 3):
        triple = rest[index : index + 3]
        if len(triple) < 3 or triple[0].mark or not triple[1].is_mark("=") or triple[2].mark:
            raise ValueError(f"option {index // 3 + 1} is not name=value, or there is more than one login module")
        if triple[0].text in options:
            raise ValueError(f"it has the option {triple[0].text} twice")
        options[triple[0].text] = triple[2].text
    return JaasEntry(module, options)


class _Token(NamedTuple):
    text: str
    mark: bool  # whether it is = or ;, not in quotes

    def is_mark(self, text: str) -> bool:
        return self.mark and self.text == text


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text.rstrip()):
        double, single, mark, word, wrong = match.groups()
        if wrong is not None:
            raise ValueError("it has a quote that is not closed")
        quoted = double if double is not None else single
        if quoted is not None:
            found.append(_Token(_ESCAPE.sub(_unescaped, quoted), mark=False))
        else:
            found.append(_Token(mark or word, mark=mark is not None))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _CONTROL.get(text, text)
