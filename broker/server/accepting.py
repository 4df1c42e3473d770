"""The accepting of connections, shared by the listeners of clients and of HTTP.

| trouble | `accept_next` |
|---|---|
| no connection waits | returns None |
| the client left before it was accepted | skips it |
| no descriptor or memory is left | raises OSError; the listener pauses, and clients wait in the backlog |

A pause is needed because the listening socket stays readable: without it, the event loop would retry without end.
"""

from __future__ import annotations

import errno
import socket
from typing import Any

ACCEPTS_A_TURN = 32
"""Connections that a listener accepts in one turn of the event loop."""
BACK_OFF_SECONDS = 0.5
"""The pause after an attempt for which no descriptor or memory was left."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def accept_next(listening: socket.socket) -> tuple[socket.socket, Any] | None:
    """Accept the next connection, and return it with the address of its peer, or None if none waits.

    Raises OSError if no descriptor or memory is left.
    """
    for _ in range(ACCEPTS_A_TURN):
        try:
            return listening.accept()
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in _EXHAUSTED:
                raise
    return None
