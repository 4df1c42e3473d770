"""The states of a connection.

| state | reads | executes | ends |
|---|---|---|---|
| open | yes | yes | by `finish`, `close`, the peer, or an error of the peer |
| finishing | no | requests that were received completely | when nothing is left to execute or to send |
| closed | no | no | |
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from odradek.broker.server.routes import Answered


class State(Enum):
    """The states in the module's table."""

    OPEN = "open"
    FINISHING = "finishing"
    CLOSED = "closed"


class Sending(NamedTuple):
    """A response that the kernel has not taken completely: it is sent when the outbox has sent `end` bytes."""

    end: int
    answered: Answered
