"""Quota entities and the kinds of limits (KIP-13, KIP-546, KIP-599, KIP-612).

An entity is a tuple of pairs `(type, name)`, in the order of types; the name None is the default of that type:

| entity | types | kinds |
|---|---|---|
| a user, a client id, both | `user`, `client-id` | the four of `CLIENT_KINDS` |
| an address | `ip` | `connection_creation_rate` |

So `(("client-id", None), ("user", "alice"))` is every client id of alice. The checks and their texts are those of
Kafka's `ClientQuotaControlManager`, because programs show them.

Differs from Kafka: an address must be written as one. Kafka resolves the names of hosts, which would block the loop.
Values must be finite; Kafka stores NaN, which limits nothing. Names have at most `LONGEST_NAME` characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (CLIENT_ID, IP, USER)

Entity = tuple[tuple[str, str | None], ...]

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

LONGEST_NAME: Final = 4096
"""Characters of a name: longer than any distinguished name of a certificate, short beside a request."""


class Number(NamedTuple):
    """The type of a limit. `largest` is the largest whole value (inclusive); None: any finite number."""

    name: str
    largest: int | None


_DOUBLE: Final = Number("DOUBLE", None)
_LONG: Final = Number("LONG", 2**63 - 1)
_INT: Final = Number("INT", 2**31 - 1)
_LONGEST_SHOWN: Final = 256
_EPSILON: Final = 1e-6  # Kafka's: a value may be that much above a whole number

CLIENT_KINDS: Final[Mapping[str, Number]] = {
    PRODUCER_BYTE_RATE: _LONG,  # bytes of Produce requests a second
    CONSUMER_BYTE_RATE: _LONG,  # bytes of records fetched a second
    REQUEST_PERCENTAGE: _DOUBLE,  # percent of the event loop's time
    CONTROLLER_MUTATION_RATE: _DOUBLE,  # partitions created and deleted a second
}
IP_KINDS: Final[Mapping[str, Number]] = {CONNECTION_CREATION_RATE: _INT}  # connections a second


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Return the entity of these parts; of a type that is named twice the last one counts, as in Kafka."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


def entity_problem(entity: Entity) -> str | None:
    """Return why quotas cannot be set for an entity, in Kafka's words; None if they can."""
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in TYPES:
            return f"Unhandled client quota entity type: {shown(kind)}"
        if name == "":
            return f"Empty {kind} not supported"
        if name is not None and len(name) > LONGEST_NAME:
            return f"The {kind} has {len(name)} characters, more than {LONGEST_NAME}"
    types = [kind for kind, _ in entity]
    if IP not in types:
        return None
    if len(types) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"  # Kafka's text
    address = entity[0][1]
    if address is not None and canonical_address(address) is None:
        return f"{shown(address)} is not a valid IP or resolvable host."
    return None


def value_problem(entity: Entity, kind: str, value: float) -> str | None:
    """Return why a limit cannot be set for a valid entity, in Kafka's words; None if it can."""
    kinds = IP_KINDS if entity[0][0] == IP else CLIENT_KINDS
    number = kinds.get(kind)
    if number is None:
        return f"Invalid configuration key {shown(kind)}"
    if value <= 0:
        return f"Quota {kind} must be greater than 0"
    if not math.isfinite(value):
        return f"Quota {kind} must be a finite number"
    if number.largest is None:
        return None
    if value > number.largest:
        return f"Proposed value for {kind} is too large for {'an' if number is _INT else 'a'} {number.name}."
    if value - int(value) > _EPSILON:
        return f"{kind} cannot be a fractional value."
    return None


def canonical_address(text: str) -> str | None:
    """Return an address in the form in which those of connections are compared; None if it is none."""
    try:
        address = ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def describe(entity: Entity) -> str:
    """Return an entity as Kafka writes it in messages."""
    entries = ", ".join(f"{shown(kind)}={'null' if name is None else shown(name)}" for kind, name in entity[:3])
    return f"ClientQuotaEntity(entries={{{entries}}})"


def shown(name: str) -> str:
    """Return a name for a message, whose length is limited: a client may send names of 32,767 bytes."""
    return name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…"
