"""Who may read the pages of the HTTP port that say something about the broker.

| client | served |
|---|---|
| shows a certificate of an authority in `metrics.ssl.truststore.location` | yes |
| sends `Authorization: Bearer <the first line of metrics.token.file>` | yes |
| any other | 401 |

The file is read for each request that has a token, so that a new token holds at once. While it cannot be read, no token
is right.
"""

from __future__ import annotations

import asyncio
import hmac
import stat
from http import HTTPStatus
from pathlib import Path

from odradek.broker.clock import Clock
from odradek.broker.server.http import Request, Response
from odradek.broker.server.limited_log import LimitedLog
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_LONGEST_TOKEN = 4096

UNAUTHORIZED = Response(
    b"401 Unauthorized\n", HTTPStatus.UNAUTHORIZED, headers=(("WWW-Authenticate", 'Bearer realm="metrics"'),)
)


class HttpGuard:
    """See the module. `trusts_certificates`: a client certificate, which OpenSSL has verified, is enough."""

    def __init__(self, token_file: Path | None, clock: Clock, *, trusts_certificates: bool) -> None:
        self._token_file = token_file
        self._trusts_certificates = trusts_certificates
        self._log = LimitedLog(_LOG, clock)

    async def allows(self, request: Request) -> bool:
        """Return whether the client that sent a request may read."""
        if self._trusts_certificates and request.has_certificate:
            return True
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if self._token_file is None or scheme.lower() != "bearer":
            return False
        try:
            token = await asyncio.get_running_loop().run_in_executor(None, read_token, self._token_file)
        except ValueError as error:
            self._log.warning("token", "token file not read", listener="metrics.port", reason=error)
            return False
        return hmac.compare_digest(shown.strip().encode("latin-1"), token)


def read_token(path: Path) -> bytes:
    """Return the first line of a token file, without white space around it.

    Raises ValueError, with a sentence that names the cure, if it cannot be read, if others may read it, or if it has no
    token of ASCII letters, digits and signs.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"metrics.token.file: {path} is not a file")
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            raise ValueError(f"metrics.token.file: others may read or write {path}: chmod o= {path}")
        with path.open("rb") as file:
            token = file.readline(_LONGEST_TOKEN + 2).strip()
    except OSError as error:
        raise ValueError(f"metrics.token.file: cannot read {path}: {error.strerror}") from error
    if not token or len(token) > _LONGEST_TOKEN or any(not 0x21 <= byte <= 0x7E for byte in token):
        raise ValueError(
            f"metrics.token.file: the first line of {path} is no token: it needs 1 to {_LONGEST_TOKEN} printable "
            "characters of ASCII, without blanks"
        )
    return token
