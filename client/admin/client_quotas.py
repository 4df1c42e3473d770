"""Quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import Results
from odradek.client.errors import ConfigurationError, broker_error
from odradek.client.network.connection import Connection
from odradek.protocol.messages import alter_client_quotas as altering
from odradek.protocol.messages import describe_client_quotas as describing

_EXACT, _DEFAULT, _ANY = 0, 1, 2


class QuotaName(Enum):
    """The values in place of a name, in entities and filters."""

    DEFAULT = "<default>"  # all that have no quota of their own
    ANY = "<any>"  # in filters: every name with a quota, and the default


class QuotaEntity(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of a quota: a user, a client id, a user with a client id, or an address. None: not a part of it."""

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None

    def __str__(self) -> str:
        return ", ".join(f"{kind} {_text(name)}" for kind, name in _parts(self).items())


class QuotaFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions of entities; None is none. With `strict` an entity has no parts besides those named here."""

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None
    strict: bool = False


EVERY_QUOTA: Final = QuotaFilter()

Quotas = dict[QuotaEntity, dict[str, float]]


async def describe_client_quotas(calls: Calls, wanted: QuotaFilter, *, timeout_ms: int | None) -> Quotas:
    tried = "list quotas"
    components = [
        describing.ComponentData(
            kind,
            {QuotaName.DEFAULT: _DEFAULT, QuotaName.ANY: _ANY}[name] if isinstance(name, QuotaName) else _EXACT,
            None if isinstance(name, QuotaName) else name,
        )
        for kind, name in _parts(wanted).items()
    ]

    async def call(connection: Connection) -> Quotas:
        request = describing.DescribeClientQuotasRequest(components, wanted.strict)
        response = await connection.send(request, describing.DescribeClientQuotasResponse)
        if response.error_code:
            raise broker_error(response.error_code, tried, response.error_message, broker=connection.name)
        return {
            _entity(entry.entity): {value.key: value.value for value in entry.values}
            for entry in response.entries or []
        }

    return await calls.once(tried, call, timeout_ms)


async def alter_client_quotas(
    calls: Calls,
    changes: Mapping[QuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool,
    timeout_ms: int | None,
) -> Results[QuotaEntity, None]:
    tried = "change quotas"
    for entity in changes:
        if not _parts(entity) or QuotaName.ANY in _parts(entity).values():
            raise ConfigurationError(tried, f"{entity!r} has no owner", "Name a user, a client id or an address")

    async def attempt(left: Sequence[QuotaEntity]) -> Outcomes[QuotaEntity, None]:
        connection = await calls.controller()
        entries = [
            altering.RequestEntryData(
                [altering.EntityData(kind, _protocol_name(name)) for kind, name in _parts(entity).items()],
                [altering.OpData(key, value or 0.0, value is None) for key, value in changes[entity].items()],
            )
            for entity in left
        ]
        request = altering.AlterClientQuotasRequest(entries, validate_only)
        response = await connection.send(request, altering.AlterClientQuotasResponse)
        return {
            _entity(row.entity): broker_error(row.error_code, tried, row.error_message, broker=connection.name)
            if row.error_code
            else None
            for row in response.entries
        }

    return await calls.for_each(tried, changes, attempt, timeout_ms)


def _parts(one: QuotaEntity | QuotaFilter) -> dict[str, str | QuotaName]:
    """The parts by their names in the protocol."""
    named = {"user": one.user, "client-id": one.client_id, "ip": one.ip}
    return {kind: name for kind, name in named.items() if name is not None}


def _text(name: str | QuotaName) -> str:
    return name.value if isinstance(name, QuotaName) else name


def _protocol_name(name: str | QuotaName) -> str | None:
    return None if isinstance(name, QuotaName) else name


def _entity(parts: Iterable[describing.EntityData | altering.EntityData]) -> QuotaEntity:
    names = {part.entity_type: QuotaName.DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return QuotaEntity(user=names.get("user"), client_id=names.get("client-id"), ip=names.get("ip"))
