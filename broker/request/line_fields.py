"""The fields of log lines about clients: who they are, and texts of theirs, which are cut to a bounded length.

The log escapes what is not printable (`structured_logging`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.security.principal import ANONYMOUS

_LONGEST_NAMES: Final = 10
_LONGEST_TEXT: Final = 256


def client_of(connection: ConnectionContext) -> str:
    """Return what the lines of a client are counted by: its principal, or its address while that is anonymous."""
    return connection.peer_address[0] if connection.principal == ANONYMOUS else shortened(str(connection.principal))


def fields_of_connection(connection: ConnectionContext, mechanism: str) -> dict[str, Any]:
    """Return who the client of a connection is, and from where."""
    return {
        "principal": shortened(str(connection.principal)),
        "mechanism": mechanism,
        "listener": connection.listener_name,
        "peer": connection.peer_address,
    }


def fields_of_request(context: RequestContext, api: str) -> dict[str, Any]:
    """Return who the client of a request is, and by which API it has asked."""
    connection = context.connection
    authentication = connection.authentication
    return {
        **fields_of_connection(connection, "" if authentication is None else authentication.mechanism),
        "client_id": None if context.client_id is None else shortened(context.client_id),
        "api": api,
    }


def few(count: int, texts: Iterable[str], *, separator: str = ", ") -> str:
    """Return the first of `count` texts, each shortened, and the number of the others, which are not asked for."""
    shown = separator.join(map(shortened, islice(texts, _LONGEST_NAMES)))
    more = count - _LONGEST_NAMES
    return shown if more <= 0 else f"{shown} and {more} more"


def shortened(text: str) -> str:
    """Return a text of a client, cut to a bounded length."""
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"
