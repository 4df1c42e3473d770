"""The text of sasl.jaas.config: one login module with its options, as Java's JAAS writes it (Kafka's `JaasConfig`).

```
org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin"
    password="admin's"
    user_alice="alice's";
```

The module's class is a name that selects a mechanism; nothing is loaded. Errors never show an option's value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/              # white space and comments
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[^\s"'=;]+)
      | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MODULES = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTHBEARER_MODULE,
}
"""The login module of each mechanism."""


class JaasError(ValueError):
    """A text that is not one entry of JAAS; the message has none of its values."""


class JaasEntry(NamedTuple):
    """One login module. The options have secrets, so `repr` shows their names only."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module!r}, {sorted(self.options)})"

    @property
    def users(self) -> dict[str, str]:
        """The passwords of the users of PLAIN, by name: the options `user_<name>`."""
        return {name.removeprefix("user_"): text for name, text in self.options.items() if name.startswith("user_")}


def parse_jaas(text: str) -> JaasEntry:
    """Parse the text of sasl.jaas.config. Raises `JaasError`."""
    tokens = _tokens(text)
    tokens.reverse()
    module = _take(tokens, "the class of a login module")
    flag = _take(tokens, "a flag such as required")
    if flag.lower() not in _FLAGS:
        raise JaasError(f"after the class of the login module comes one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while (name := _take(tokens, "an option, or ; at the end")) != ";":
        if _take(tokens, "=") != "=":
            raise JaasError("an option is not of the form name=value")
        value = _take(tokens, "the value of an option")
        if value in ("=", ";"):
            raise JaasError("an option has no value")
        options[name] = _unquoted(value)
    if tokens:
        raise JaasError("there is more than one entry: after ; nothing may follow")
    return JaasEntry(_unquoted(module), options)


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise JaasError("a quotation mark is not closed")
        if found.lastgroup is not None:
            tokens.append(found[0])
        position = found.end()
    return tokens


def _take(tokens: list[str], expected: str) -> str:
    if not tokens:
        raise JaasError(f"the text ends where {expected} should be; an entry ends with ;")
    return tokens.pop()


def _unquoted(token: str) -> str:
    if token[0] not in "\"'":
        return token
    return _ESCAPED.sub(_unescaped, token[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)
