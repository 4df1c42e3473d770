"""The log line of a connection that ends because of an error.

| error | line |
|---|---|
| the client has disconnected, or its host is gone | none |
| it breaks the protocol, or a handler closes the connection | one warning |
| it speaks another protocol: TLS to a listener without, HTTP | one warning in ten seconds |
| anything else, which is a bug or a broken disk | one error, with a traceback |
"""

from __future__ import annotations

import errno
from typing import Final

from odradek.broker.request.context import CloseConnection, ConnectionContext
from odradek.broker.request.time_slices import ClientDisconnected
from odradek.broker.server.limited_log import LimitedLog
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ForeignProtocolError, RemoteProtocolError

_LOG: Final = StructuredLogger(__name__)
PEER_DISCONNECTED: Final = frozenset(
    {errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENOTCONN}
)


def log_failure(error: BaseException, context: ConnectionContext, limited: LimitedLog) -> None:
    """Log why a connection ends."""
    peer, listener = context.peer_address, context.listener_name
    if isinstance(error, ClientDisconnected) or (isinstance(error, OSError) and error.errno in PEER_DISCONNECTED):
        return
    if isinstance(error, ForeignProtocolError):
        limited.warning("foreign protocol", "connection closed", listener=listener, peer=peer, reason=_reason(error))
    elif isinstance(error, (RemoteProtocolError, CloseConnection)):
        _LOG.warning("connection closed", peer=peer, listener=listener, reason=error)
    else:
        _LOG.exception("connection failed", error, peer=peer, listener=listener)


def _reason(error: ForeignProtocolError) -> str:
    if error.is_tls:
        return "the client speaks TLS, this listener does not: its security.protocol is not SSL or SASL_SSL"
    return str(error)
