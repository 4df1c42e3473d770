"""Reading a key set from the URL in `sasl.oauthbearer.jwks.endpoint.url`: https, or a file.

Only https URLs whose host is on an allow-list, so that a property cannot make the broker request what it should not
(CVE-2025-27817). Redirects are errors and are not followed. At most `MAXIMUM_BYTES` are read. `fetch` blocks: call it
on a thread; `abort`, from another, ends it.
"""

from __future__ import annotations

import http.client
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from odradek.broker.security.authentication.tokens.key_set import MAXIMUM_BYTES, KeySetError
from odradek.broker.security.tls.web_context import context_for_the_web

if TYPE_CHECKING:
    import ssl

SOCKET_TIMEOUT_SECONDS: Final = 5.0
"""For each connect, send and receive; the whole has a limit of its own (`key_cache`)."""


class KeySource(Protocol):
    """Where the text of a key set comes from."""

    def fetch(self) -> bytes:
        """Return the text. Blocks. Raises OSError, `http.client.HTTPException` or `KeySetError`."""
        ...

    def abort(self) -> None:
        """Make a `fetch` that is running on another thread end soon. Does nothing if there is none."""
        ...


def key_source(url: str, allowed_hosts: Collection[str], context: ssl.SSLContext | None = None) -> KeySource:
    """Return the source of a URL. `context`: whom to trust, None for the machine's certification authorities.

    Raises ValueError with a sentence if the URL is not allowed.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise ValueError(f"the URL {url!r} names no file of this machine")
        return FileKeySource(Path(unquote(parts.path)))
    if parts.scheme != "https" or parts.hostname is None or parts.username is not None:
        raise ValueError("the URL of a key set begins with https:// or file:/, and has no user or password")
    if parts.hostname not in {host.lower() for host in allowed_hosts}:
        raise ValueError(f"the host {parts.hostname} is not one of those from which key sets may be fetched")
    return HttpsKeySource(parts, context)


class FileKeySource:
    """A key set in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def fetch(self) -> bytes:
        with self._path.open("rb") as file:
            return _bounded(file.read(MAXIMUM_BYTES + 1))

    def abort(self) -> None:
        """Do nothing: a file does not keep its reader waiting."""


class HttpsKeySource:
    """A key set at an https URL. One `fetch` at a time."""

    def __init__(self, url: SplitResult, context: ssl.SSLContext | None = None) -> None:
        self._host = url.hostname or ""
        self._port = url.port
        self._target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._context = context
        self._connection: http.client.HTTPSConnection | None = None

    def fetch(self) -> bytes:
        context = self._context or context_for_the_web()
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=SOCKET_TIMEOUT_SECONDS, context=context
        )
        self._connection = connection
        try:
            connection.request("GET", self._target, headers={"Accept": "application/json", "Connection": "close"})
            with connection.getresponse() as response:  # closing the connection leaves it open
                if response.status != http.client.OK:
                    redirect = " (redirects are not followed)" if 300 <= response.status < 400 else ""
                    raise KeySetError(f"{self._host} answered with status {response.status}{redirect}")
                return _bounded(response.read(MAXIMUM_BYTES + 1))
        except OSError:
            raise  # of which some are ValueErrors, too: a certificate that is not trusted
        except ValueError:
            raise KeySetError("the connection was closed") from None  # how ssl reports an abort
        finally:
            self._connection = None
            connection.close()

    def abort(self) -> None:
        connection = self._connection
        socket = None if connection is None else connection.sock  # None until it is connected
        if socket is not None:
            try:
                socket.shutdown(2)  # both directions: wakes the thread, which then closes it
            except OSError:
                return


def _bounded(text: bytes) -> bytes:
    if len(text) > MAXIMUM_BYTES:
        raise KeySetError(f"the key set has more than {MAXIMUM_BYTES} bytes")
    return text
