"""The principal of a connection: who its requests act for, as in Kafka's `KafkaPrincipal`."""

from __future__ import annotations

import msgspec

USER = "User"
"""The type of every principal that a client can have here. Rules may name other types, which match nobody."""


class Principal(msgspec.Struct, frozen=True, order=True):
    """A type and a name; as text `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Parse `type:name`; the name may contain colons. Raises ValueError."""
        kind, colon, name = text.partition(":")
        if not kind or not colon:
            raise ValueError(f"{text!r} is not of the form type:name, as User:alice")
        return cls(kind, name)


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""A client that did not say who it is: on a listener without authentication, or without a client certificate."""
EVERYBODY = Principal(USER, "*")
"""The principal of rules that hold for every user."""
