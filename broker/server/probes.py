"""What the probes of the HTTP port ask: for `/healthz` and `/readyz`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def _nothing() -> str | None:
    return None


class Probes(NamedTuple):
    """Each returns a reason, or None.

    `not_ready`: why clients cannot be served; `unhealthy`: why the process should be restarted; `remark`: what needs an
    operator, although clients can be served.
    """

    not_ready: Callable[[], str | None]
    unhealthy: Callable[[], str | None] = _nothing
    remark: Callable[[], str | None] = _nothing
