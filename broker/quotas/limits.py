"""The limit that holds for a client: the most specific entity that has a limit of that kind.

| order | entity | shared by |
|---|---|---|
| 1 | user and client id | connections of this user with this client id |
| 2 | user, every client id | as 1: each client id for itself |
| 3 | user | all connections of the user |
| 4 | every user, client id | as 1 |
| 5 | every user, every client id | as 1 |
| 6 | every user | as 3: each user for itself |
| 7 | client id | all connections with the client id, of any user |
| 8 | every client id | as 7: each client id for itself |

The order is that of Kafka's `ClientQuotaManager`. It applies to each kind for itself: a limit for producing hides none
for fetching. A connection without a client id has the client id "" (empty), for which only defaults can be set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from odradek.broker.quotas.entities import CLIENT_ID, CLIENT_KINDS, IP, USER, Entity

ABSENT: Final = ""  # an entity without this type; no name is empty
DEFAULT: Final = None

_Table = dict[tuple[str | None, str | None], float]  # by user and client id


class Limit(NamedTuple):
    """A limit, and who shares it: `user` and `client_id`, each empty if it does not matter."""

    user: str
    client_id: str
    value: float


class Limits:
    """The limits of clients by kind, from all quotas of the cluster; false if there are none."""

    def __init__(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        self._tables: dict[str, _Table] = {}
        for entity, values in quotas.items():
            self.set(entity, values)

    def __bool__(self) -> bool:
        return bool(self._tables)

    def set(self, entity: Entity, values: Mapping[str, float]) -> None:
        """Replace the quotas of an entity; without values it has none."""
        names = dict(entity)
        if IP in names:
            return
        key = names.get(USER, ABSENT), names.get(CLIENT_ID, ABSENT)
        for kind in CLIENT_KINDS:  # others were stored by another version
            value = values.get(kind, 0)
            if value > 0:
                self._tables.setdefault(kind, {})[key] = value
            elif kind in self._tables:
                self._tables[kind].pop(key, None)
                if not self._tables[kind]:
                    del self._tables[kind]

    def find(self, kind: str, user: str, client_id: str) -> Limit | None:
        """Return the limit of a client; None if it has none."""
        table = self._tables.get(kind)
        if table is None:
            return None
        client_ids = (client_id, DEFAULT) if client_id else (DEFAULT,)
        for name in (user, DEFAULT):
            for each in client_ids:
                value = table.get((name, each))
                if value is not None:
                    return Limit(user, client_id, value)
            value = table.get((name, ABSENT))
            if value is not None:
                return Limit(user, ABSENT, value)
        for each in client_ids:
            value = table.get((ABSENT, each))
            if value is not None:
                return Limit(ABSENT, client_id, value)
        return None
